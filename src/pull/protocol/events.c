/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/protocol/events.h"

#include <string.h>

#include "sys/calls.h"

enum { LINE = 8 * 1024 * 1024, MESSAGE = 16 * 1024 };

void pull_event_line(const struct pull_events *events, struct nd_text *line) {
        nd_text_add(line, "\n");
        if (line->overflow)
                return;
        for (size_t done = 0; done < line->length;) {
                ssize_t n = nd_sys->write(events->fd, line->bytes + done, line->length - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        /* the daemon has closed the pipe; the exit status reports the end */
                        return;
                done += (size_t) n;
        }
}

void pull_event_resolved(const struct pull_events *events, const struct nd_digest *digest, const char *media_type) {
        nd_autotext struct nd_text line = ND_TEXT(MESSAGE);
        struct nd_json_out out = {.text = &line};
        char text[ND_DIGEST_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "event", "resolved");
        nd_json_string(&out, "digest", nd_digest_text(digest, text));
        nd_json_string(&out, "mediaType", media_type ? media_type : "");
        nd_json_close(&out, '}');
        pull_event_line(events, &line);
}

void pull_event_layer(const struct pull_events *events, const struct nd_digest *digest, uint64_t size, const char *state,
                      uint64_t done) {
        nd_autotext struct nd_text line = ND_TEXT(MESSAGE);
        struct nd_json_out out = {.text = &line};
        char text[ND_DIGEST_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "event", "layer");
        nd_json_string(&out, "digest", nd_digest_text(digest, text));
        nd_json_number(&out, "size", size);
        nd_json_string(&out, "state", state);
        nd_json_number(&out, "done", done);
        nd_json_close(&out, '}');
        pull_event_line(events, &line);
}

void pull_event_unpacked(const struct pull_events *events, const struct nd_digest *chain, const struct nd_digest *diff_id,
                         const struct nd_digest *below, uint64_t size, uint64_t inodes) {
        nd_autotext struct nd_text line = ND_TEXT(MESSAGE);
        struct nd_json_out out = {.text = &line};
        char text[ND_DIGEST_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "event", "unpacked");
        nd_json_string(&out, "chain", nd_digest_text(chain, text));
        nd_json_string(&out, "diffId", nd_digest_text(diff_id, text));
        nd_json_string(&out, "parent", below ? nd_digest_text(below, text) : "");
        nd_json_number(&out, "size", size);
        nd_json_number(&out, "inodes", inodes);
        nd_json_close(&out, '}');
        pull_event_line(events, &line);
}

void pull_event_synced(const struct pull_events *events) {
        nd_autotext struct nd_text line = ND_TEXT(MESSAGE);

        nd_text_add(&line, "{\"event\":\"synced\"}");
        pull_event_line(events, &line);
}

static void replace_all(char **message, const char *secret) {
        nd_autotext struct nd_text text = ND_TEXT(MESSAGE);
        size_t length = strlen(secret);
        const char *at = *message, *found;

        if (length < 4) /* too short: would match ordinary text */
                return;
        for (; (found = strstr(at, secret)); at = found + length) {
                nd_text_append(&text, at, (size_t) (found - at));
                nd_text_add(&text, "[secret]");
        }
        nd_text_add(&text, at);
        free(*message);
        *message = nd_text_steal(&text);
}

static void redact_one(void *userdata, const char *secret) {
        char **message = userdata;

        if (*message)
                replace_all(message, secret);
}

/* Removes user and query from every "https://user:word@host/path?query" in a text. */
static char *redact_urls(const char *message) {
        nd_autotext struct nd_text text = ND_TEXT(MESSAGE);
        const char *url;

        while ((url = strstr(message, "://"))) {
                size_t authority = strcspn(url + 3, "/?# '\"),;"), length;
                const char *at = memrchr(url + 3, '@', authority);

                nd_text_append(&text, message, (size_t) (url + 3 - message));
                message = at ? at + 1 : url + 3;
                length = strcspn(message, "?# '\"),;");
                nd_text_append(&text, message, length);
                message += length;
                if (*message == '?' || *message == '#')
                        message += strcspn(message, " '\"),;");
        }
        nd_text_add(&text, message);
        return text.length > 0 ? nd_text_steal(&text) : nd_strdup("");
}

char *pull_events_redact(const struct pull_events *events, const char *message) {
        char *clean = redact_urls(message);

        if (events->secrets)
                events->secrets(events->userdata, redact_one, &clean);
        return clean ? clean : nd_strdup("");
}

void pull_event_error(const struct pull_events *events, const struct nd_error *error) {
        nd_autofree char *message = pull_events_redact(events, nd_error_text(error));
        nd_autotext struct nd_text line = ND_TEXT(LINE);
        struct nd_json_out out = {.text = &line};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "event", "error");
        nd_json_number(&out, "code", (uint64_t) nd_error_code(error));
        nd_json_string(&out, "message", message);
        nd_json_close(&out, '}');
        pull_event_line(events, &line);
}
