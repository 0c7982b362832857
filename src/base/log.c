/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - see log.h
 *
 * Theory of operation
 *   systemd sets JOURNAL_STREAM to device:inode of the stream it connected to standard error. If
 *   that is still our standard error, messages go to the journal's datagram socket in its native
 *   format, so that fields stay fields; a message that the socket refuses falls back to the
 *   line. A full journal never blocks the caller: neither socket is waited for. The line is
 *   formatted in one place for both. journalctl replaces a MESSAGE that is not printable UTF-8
 *   by "blob data", so the line never has such bytes.
 * Invariant  a value never breaks out of its line or its field, for any bytes in it. */
#include "base/log.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/text.h"

enum {
        LINE_CEILING = 16 * 1024,
        VALUE_CEILING = 4 * 1024,
};

static struct {
        enum nd_log_level most_verbose;
        int journal; /* -EBADF: use standard error */
        void (*sink)(enum nd_log_level level, const char *line);
} log_state = {.most_verbose = ND_LOG_INFO, .journal = -EBADF};

void nd_log_set_level(enum nd_log_level most_verbose) {
        log_state.most_verbose = most_verbose;
}

void nd_log_set_sink(void (*sink)(enum nd_log_level level, const char *line)) {
        log_state.sink = sink;
}

static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        nd_autofree char *ours = nullptr;
        struct stat st;

        if (!stream || fstat(STDERR_FILENO, &st) < 0)
                return false;
        ours = nd_format("%llu:%llu", (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
        return nd_streq(stream, ours);
}

void nd_log_open(void) {
        static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
        nd_autoclose int fd = -EBADF;

        if (!stderr_is_journal())
                return;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *) &address, sizeof address) == 0)
                log_state.journal = nd_take_fd(fd);
}

static bool plain(const char *value) {
        if (*value == '\0')
                return false;
        for (const char *c = value; *c; c++)
                if (!isalnum((unsigned char) *c) && !strchr("-_./:@,+%", *c))
                        return false;
        return true;
}

static void add_line_value(struct nd_text *line, const char *value) {
        if (plain(value))
                nd_text_add(line, value);
        else
                nd_text_add_quoted(line, value, strnlen(value, VALUE_CEILING));
}

enum role {
        ROLE_FIELD,
        ROLE_CAUSE,
        ROLE_REMEDY,
};

static enum role role_of(const char *key) {
        if (nd_streq(key, "error") || nd_streq(key, "reason") || nd_streq(key, "why"))
                return ROLE_CAUSE;
        return nd_streq(key, "remedy") ? ROLE_REMEDY : ROLE_FIELD;
}

static void add_fields(struct nd_text *line, const struct nd_log_field *fields) {
        const char *before = " (";

        for (; fields->key; fields++) {
                if (role_of(fields->key) != ROLE_FIELD)
                        continue;
                nd_text_addf(line, "%s%s=", before, fields->key);
                add_line_value(line, fields->value ? fields->value : "");
                before = " ";
        }
        if (nd_streq(before, " "))
                nd_text_add(line, ")");
}

/* Multi-line causes (the output of a helper) end with a newline. */
static void add_sentences(struct nd_text *line, const struct nd_log_field *fields, enum role role, const char *before) {
        for (; fields->key; fields++) {
                size_t length = strnlen(fields->value ? fields->value : "", VALUE_CEILING);

                while (length > 0 && isspace((unsigned char) fields->value[length - 1]))
                        length--;
                if (role_of(fields->key) != role || length == 0)
                        continue;
                nd_text_add(line, before);
                nd_text_add_printable(line, fields->value, length);
        }
}

/* The ceiling may have split the last character. */
static void trim_character(struct nd_text *line) {
        size_t start = line->length;

        while (start > 0 && ((unsigned char) line->bytes[start - 1] & 0xc0) == 0x80)
                start--;
        if (start > 0 && !nd_text_utf8_valid(line->bytes + start - 1, line->length - start + 1))
                line->bytes[line->length = start - 1] = '\0';
}

/* The finished line without its level. */
static void add_line(struct nd_text *line, const char *message, const struct nd_log_field *fields) {
        nd_text_add_printable(line, message, strlen(message));
        add_fields(line, fields);
        add_sentences(line, fields, ROLE_CAUSE, ": ");
        add_sentences(line, fields, ROLE_REMEDY, "; ");
        if (line->overflow)
                trim_character(line);
}

static const char *level_name(enum nd_log_level level) {
        switch (level) {
        case ND_LOG_ERROR:
                return "error";
        case ND_LOG_WARNING:
                return "warning";
        case ND_LOG_NOTICE:
                return "notice";
        case ND_LOG_INFO:
                return "info";
        default:
                return "debug";
        }
}

/* In a unit standard error is a stream to the journal. A stalled journal has full sockets: then the
 * line is dropped rather than waited for. */
static void write_line(const char *bytes, size_t length) {
        if (log_state.journal < 0 ||
            (send(STDERR_FILENO, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == ENOTSOCK))
                (void) !write(STDERR_FILENO, bytes, length);
}

static void to_line(enum nd_log_level level, const char *message, const struct nd_log_field *fields) {
        nd_autotext struct nd_text line = ND_TEXT(LINE_CEILING - 1);

        if (log_state.journal >= 0 && !log_state.sink)
                nd_text_addf(&line, "<%d>", (int) level); /* journald reads the level from this */
        else
                nd_text_addf(&line, "%s: ", level_name(level));
        add_line(&line, message, fields);
        if (log_state.sink) {
                log_state.sink(level, nd_text_get(&line));
                return;
        }
        /* A truncated line ends with a newline, too, or the next one would continue it. */
        line.ceiling++;
        nd_text_add(&line, "\n");
        write_line(nd_text_get(&line), line.length);
}

/* The native format: KEY, newline, 64-bit little-endian length, bytes, newline. Any byte may be in
 * a value. */
static void add_journal_field(struct nd_text *packet, const char *key, const char *value, size_t ceiling) {
        uint64_t length = strnlen(value, ceiling);
        char upper[64];
        size_t n = strnlen(key, sizeof upper - 1);

        for (size_t i = 0; i < n; i++)
                upper[i] = (char) toupper((unsigned char) key[i]);
        upper[n] = '\n';
        nd_text_append(packet, upper, n + 1);
        for (int shift = 0; shift < 64; shift += 8)
                nd_text_append(packet, &(char) {(char) (length >> shift)}, 1);
        nd_text_append(packet, value, length);
        nd_text_add(packet, "\n");
}

static bool to_journal(enum nd_log_level level, const char *message, const struct nd_log_field *fields) {
        nd_autotext struct nd_text packet = ND_TEXT(4 * LINE_CEILING), line = ND_TEXT(LINE_CEILING);
        const char priority[] = {(char) ('0' + (int) level), '\0'};

        add_line(&line, message, fields);
        add_journal_field(&packet, "message", nd_text_get(&line), LINE_CEILING);
        add_journal_field(&packet, "priority", priority, VALUE_CEILING);
        add_journal_field(&packet, "syslog_identifier", program_invocation_short_name, VALUE_CEILING);
        for (; fields->key; fields++)
                add_journal_field(&packet, fields->key, fields->value ? fields->value : "", VALUE_CEILING);
        return !packet.overflow &&
               send(log_state.journal, packet.bytes, packet.length, MSG_NOSIGNAL) == (ssize_t) packet.length;
}

void nd_log_fields(enum nd_log_level level, const char *message, const struct nd_log_field *fields) {
        int saved = errno;

        if (level <= log_state.most_verbose &&
            (log_state.sink || log_state.journal < 0 || !to_journal(level, message, fields)))
                to_line(level, message, fields);
        errno = saved;
}

void nd_log_fields_last(enum nd_log_level level, const char *message, const struct nd_log_field *fields) {
        int saved = errno;

        if (level <= log_state.most_verbose)
                to_line(level, message, fields);
        errno = saved;
}
