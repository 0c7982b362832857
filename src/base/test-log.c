/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/text.h"

static char *last_line; /* received by the sink */
static enum nd_log_level last_level;

static void keep(enum nd_log_level level, const char *line) {
        free(last_line);
        last_line = nd_strdup(line);
        last_level = level;
}

static int start([[maybe_unused]] void **state) {
        nd_log_set_sink(keep);
        nd_log_set_level(ND_LOG_DEBUG);
        return 0;
}

static int finish([[maybe_unused]] void **state) {
        nd_log_set_sink(nullptr);
        nd_log_set_level(ND_LOG_INFO);
        free(nd_take_ptr(last_line));
        return 0;
}

static void a_line_has_the_level_the_message_and_the_fields([[maybe_unused]] void **state) {
        nd_log(ND_LOG_WARNING, "foreign file", nd_field("pod", "a-b"), nd_field("file", "/x/y z"));
        assert_string_equal(last_line, "warning: foreign file (pod=a-b file=\"/x/y z\")");
        assert_int_equal(last_level, ND_LOG_WARNING);
        nd_log(ND_LOG_ERROR, "no fields");
        assert_string_equal(last_line, "error: no fields");
}

static void every_level_has_its_word([[maybe_unused]] void **state) {
        static const char *const words[] = {[ND_LOG_ERROR] = "error: m",
                                            [ND_LOG_WARNING] = "warning: m",
                                            [ND_LOG_NOTICE] = "notice: m",
                                            [ND_LOG_INFO] = "info: m",
                                            [ND_LOG_DEBUG] = "debug: m"};

        for (int level = ND_LOG_ERROR; level <= ND_LOG_DEBUG; level++) {
                nd_log((enum nd_log_level) level, "m");
                assert_string_equal(last_line, words[level]);
        }
}

static void messages_above_the_level_are_not_written([[maybe_unused]] void **state) {
        nd_log_set_level(ND_LOG_WARNING);
        nd_log(ND_LOG_NOTICE, "too much");
        assert_null(last_line);
        nd_log(ND_LOG_WARNING, "right");
        assert_non_null(last_line);
}

static void a_value_cannot_forge_a_line_or_a_field([[maybe_unused]] void **state) {
        nd_log(ND_LOG_INFO, "two\nlines\x1b[2J", nd_field("a", "x\nerror: forged pod=b"), nd_field("b", ""),
               nd_field("c", nullptr), nd_field("d", "\x1b[31m"));
        assert_string_equal(last_line, "info: two lines [2J (a=\"x\\nerror: forged pod=b\" b=\"\" c=\"\" d=\"\\x1b[31m\")");
        nd_log(ND_LOG_INFO, "\xff\xc2\x9b", nd_field("error", "x\nerror: forged\x1b[2J\n"));
        assert_string_equal(last_line, "info: \xef\xbf\xbd\xef\xbf\xbd: x error: forged [2J");
}

static void the_cause_and_the_remedy_follow_the_fields([[maybe_unused]] void **state) {
        nd_log(ND_LOG_WARNING, "cannot save a record", nd_field("error", "write '/x y': No space left on device"),
               nd_field("container", "a1"), nd_field("remedy", "free space"));
        assert_string_equal(last_line,
                            "warning: cannot save a record (container=a1): write '/x y': No space left on device; free space");
        nd_log(ND_LOG_WARNING, "a feature does not work", nd_field("reason", "EPERM"));
        assert_string_equal(last_line, "warning: a feature does not work: EPERM");
        nd_log(ND_LOG_WARNING, "refused", nd_field("why", "two\nlines\n"), nd_field("error", nullptr));
        assert_string_equal(last_line, "warning: refused: two lines");
}

static void errno_survives_a_message([[maybe_unused]] void **state) {
        errno = ENOTTY;
        nd_log(ND_LOG_INFO, "m", nd_field("a", "b c"));
        assert_int_equal(errno, ENOTTY);
}

/* Runs a function with standard error redirected to a pipe, and returns the output. */
static char *captured(void (*function)(void)) {
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        char piece[4096];
        int fds[2], status;
        ssize_t n;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) dup2(fds[1], STDERR_FILENO);
                nd_log_set_sink(nullptr);
                function();
                _exit(0);
        }
        (void) close(fds[1]);
        while ((n = read(fds[0], piece, sizeof piece)) > 0)
                nd_text_append(&text, piece, (size_t) n);
        (void) close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        return nd_text_steal(&text);
}

static void log_two(void) {
        nd_log_open(); /* standard error is not a journal here, so lines are written */
        nd_log(ND_LOG_INFO, "one", nd_field("n", "1"));
        nd_log(ND_LOG_ERROR, "two");
}

static void without_a_journal_lines_go_to_standard_error([[maybe_unused]] void **state) {
        expect_text(captured(log_two), "info: one (n=1)\nerror: two\n");
}

static void log_huge(void) {
        enum { SIZE = 5000 };
        char value[SIZE + 1];

        memset(value, '\1', SIZE);
        value[SIZE] = '\0';
        nd_log(ND_LOG_INFO, "huge", nd_field("a", value), nd_field("b", value), nd_field("c", value), nd_field("d", value));
        nd_log(ND_LOG_INFO, "next");
}

static void a_truncated_line_ends_with_a_newline([[maybe_unused]] void **state) {
        nd_autofree char *text = captured(log_huge);
        size_t length = strcspn(text, "\n");

        assert_true(length <= 16 * 1024);
        assert_string_equal(text + length, "\ninfo: next\n");
}

static void log_wide(void) {
        enum { SIZE = 4095 };
        char value[SIZE + 1];

        for (size_t i = 0; i < SIZE; i += 3)
                memcpy(value + i, "€", 3);
        value[SIZE] = '\0';
        nd_log(ND_LOG_INFO, "w", nd_field("a", value), nd_field("b", value), nd_field("c", value), nd_field("d", value));
}

/* journalctl shows "blob data" for a message that is not UTF-8. */
static void a_truncated_line_ends_with_a_whole_character([[maybe_unused]] void **state) {
        nd_autofree char *text = captured(log_wide);

        assert_true(strlen(text) > 16 * 1000);
        assert_true(nd_text_utf8_valid(text, strlen(text)));
}

/* A fake journal socket, in a private mount namespace. Returns the socket or -1 if that is not
 * allowed. */
static int fake_journal(void) {
        static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
        int fd;

        if (unshare(CLONE_NEWNS) < 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
            mount("tmpfs", "/run", "tmpfs", 0, nullptr) < 0)
                return -1;
        (void) mkdir("/run/systemd", 0755);
        (void) mkdir("/run/systemd/journal", 0755);
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && bind(fd, (const struct sockaddr *) &address, sizeof address) < 0)
                return -1;
        return fd;
}

/* The last message does not go to the journal's socket, which is read once. */
static void log_to_journal(void) {
        char stream[64], packet[8192];
        struct stat st;
        ssize_t n;
        int fd = fake_journal();

        if (fd < 0) {
                dprintf(STDERR_FILENO, "not allowed");
                _exit(0);
        }
        (void) fstat(STDERR_FILENO, &st);
        (void) snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        (void) setenv("JOURNAL_STREAM", stream, 1);
        nd_log_open();
        nd_log(ND_LOG_NOTICE, "hello", nd_field("pod_uid", "a\nb"), nd_field("error", "no\xff"), nd_field("remedy", "r"));
        nd_log_last(ND_LOG_WARNING, "to standard error");
        n = recv(fd, packet, sizeof packet, 0);
        (void) !write(STDERR_FILENO, packet, n > 0 ? (size_t) n : 0);
        /* From here on the journal does not exist, and messages must not get lost. */
        (void) close(fd);
        nd_log(ND_LOG_NOTICE, "fallback");
        nd_log_last(ND_LOG_ERROR, "last", nd_field("error", "no"));
}

static void in_a_unit_the_journal_gets_the_finished_line_and_the_fields([[maybe_unused]] void **state) {
        static const char message[] =
                "MESSAGE\n\x20\0\0\0\0\0\0\0hello (pod_uid=\"a\\nb\"): no\xef\xbf\xbd; r\nPRIORITY\n\1\0\0\0\0\0\0\0005\n";
        static const char field[] = "POD_UID\n\3\0\0\0\0\0\0\0a\nb\nERROR\n\3\0\0\0\0\0\0\0no\xff\n";
        static char bytes[16 * 1024];
        int fds[2], status;
        ssize_t n, length = 0, first;
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) dup2(fds[1], STDERR_FILENO);
                nd_log_set_sink(nullptr);
                log_to_journal();
                _exit(0);
        }
        (void) close(fds[1]);
        while ((n = read(fds[0], bytes + length, sizeof bytes - (size_t) length)) > 0)
                length += n;
        (void) close(fds[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        if (length == 11 && memcmp(bytes, "not allowed", 11) == 0)
                skip_because("a mount namespace needs privilege");
        first = (ssize_t) strlen("<4>to standard error\n");
        assert_memory_equal(bytes, "<4>to standard error\n", (size_t) first);
        assert_memory_equal(bytes + first, message, sizeof message - 1);
        assert_non_null(memmem(bytes, (size_t) length, field, sizeof field - 1));
        assert_non_null(memmem(bytes, (size_t) length, "<5>fallback\n<3>last: no\n", 24));
}

/* A stalled journal: nothing reads from either of its sockets. */
static void a_stalled_journal_is_not_waited_for([[maybe_unused]] void **state) {
        enum { MESSAGES = 20000, PATIENCE_S = 60 };
        int pair[2], status;
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                char stream[64];
                struct stat st;

                (void) alarm(PATIENCE_S);
                (void) dup2(pair[1], STDERR_FILENO);
                nd_log_set_sink(nullptr);
                if (fake_journal() < 0)
                        _exit(77);
                (void) fstat(STDERR_FILENO, &st);
                (void) snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
                (void) setenv("JOURNAL_STREAM", stream, 1);
                nd_log_open();
                for (unsigned i = 0; i < MESSAGES; i++)
                        nd_log(ND_LOG_NOTICE, "much", nd_field("more", "and more"));
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        (void) close(pair[0]);
        (void) close(pair[1]);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                skip_because("a mount namespace needs privilege");
        assert_int_equal(status, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_line_has_the_level_the_message_and_the_fields, start, finish),
                cmocka_unit_test_setup_teardown(every_level_has_its_word, start, finish),
                cmocka_unit_test_setup_teardown(messages_above_the_level_are_not_written, start, finish),
                cmocka_unit_test_setup_teardown(a_value_cannot_forge_a_line_or_a_field, start, finish),
                cmocka_unit_test_setup_teardown(the_cause_and_the_remedy_follow_the_fields, start, finish),
                cmocka_unit_test_setup_teardown(errno_survives_a_message, start, finish),
                cmocka_unit_test(without_a_journal_lines_go_to_standard_error),
                cmocka_unit_test(a_truncated_line_ends_with_a_newline),
                cmocka_unit_test(a_truncated_line_ends_with_a_whole_character),
                cmocka_unit_test(in_a_unit_the_journal_gets_the_finished_line_and_the_fields),
                cmocka_unit_test(a_stalled_journal_is_not_waited_for),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
