/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/output.h"

/* What a child does with its standard output, and how it ends. */
struct attempt {
        const char *to; /* a file; nullptr = closed */
        bool broken_pipe;
        size_t bytes;
};

/* Becomes the process under test: prints and exits as a program does. */
[[noreturn]] static void print_and_exit(const struct attempt *attempt, int errors) {
        int ends[2] = {-EBADF, -EBADF}, out = -EBADF;

        (void) fflush(stdout);
        (void) dup2(errors, STDERR_FILENO);
        (void) signal(SIGPIPE, SIG_IGN);
        if (attempt->broken_pipe) {
                if (pipe2(ends, O_CLOEXEC) < 0)
                        _exit(1);
                (void) close(ends[0]);
                out = ends[1];
        } else if (attempt->to) {
                out = open(attempt->to, O_WRONLY | O_CLOEXEC);
        }
        (void) close(STDOUT_FILENO);
        if (out >= 0)
                (void) dup2(out, STDOUT_FILENO);
        nd_output_open();
        for (size_t i = 0; i < attempt->bytes; i++)
                (void) putchar('x');
        _exit(nd_output_close("prog", 3));
}

static int status_of(const struct attempt *attempt, char text[static 256]) {
        int ends[2], status = 0;
        size_t length = 0;
        ssize_t n;
        pid_t child;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        (void) fflush(stdout);
        child = fork();
        assert_true(child >= 0);
        if (child == 0)
                print_and_exit(attempt, ends[1]);
        (void) close(ends[1]);
        while ((n = read(ends[0], text + length, 255 - length)) > 0)
                length += (size_t) n;
        text[length] = '\0';
        (void) close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void output_that_was_not_written_gives_a_message_and_an_exit_status([[maybe_unused]] void **state) {
        static const struct {
                struct attempt attempt;
                int status;
                const char *text;
        } cases[] = {
                {{.to = "/dev/null", .bytes = 100000}, 3, ""},
                {{.to = "/dev/full"}, 3, ""}, /* nothing was printed */
                {{.to = "/dev/full", .bytes = 10},
                 ND_EXIT_OUTPUT,
                 "prog: standard output: No space left on device; the output is incomplete\n"},
                {{.bytes = 10}, ND_EXIT_OUTPUT, "prog: standard output: Bad file descriptor; the output is incomplete\n"},
                {{.broken_pipe = true, .bytes = 10}, ND_EXIT_OUTPUT, ""},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                char text[256];

                assert_int_equal(status_of(&cases[i].attempt, text), cases[i].status);
                assert_string_equal(text, cases[i].text);
        }
}

static void output_larger_than_the_buffer_is_reported_too([[maybe_unused]] void **state) {
        char text[256];

        assert_int_equal(status_of(&(struct attempt) {.to = "/dev/full", .bytes = 1 << 20}, text), ND_EXIT_OUTPUT);
        expect_contains(text, "the output is incomplete\n");
}

static void a_closed_descriptor_does_not_become_another_file([[maybe_unused]] void **state) {
        int status = 0;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
                (void) close(STDIN_FILENO);
                (void) close(STDOUT_FILENO);
                nd_output_open();
                _exit(open("/dev/zero", O_RDONLY | O_CLOEXEC) > STDERR_FILENO ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_that_was_not_written_gives_a_message_and_an_exit_status),
                cmocka_unit_test(output_larger_than_the_buffer_is_reported_too),
                cmocka_unit_test(a_closed_descriptor_does_not_become_another_file),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
