/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/memory.h"

static void a_condition_that_holds_does_nothing([[maybe_unused]] void **state) {
        int evaluated = 0;

        nd_assert(++evaluated == 1);
        assert_int_equal(evaluated, 1);
}

[[noreturn]] static void fail_in_child(int output, int number) {
        (void) signal(SIGABRT, SIG_DFL); /* cmocka's handler would report a failed test */
        (void) setrlimit(RLIMIT_CORE, &(struct rlimit) {});
        (void) dup2(output, STDERR_FILENO);
        nd_assert(number == 2);
        _exit(0);
}

static void a_condition_that_does_not_hold_is_printed_and_aborts([[maybe_unused]] void **state) {
        nd_autoclose int reading = -EBADF, writing = -EBADF;
        char text[512] = "";
        int ends[2], status;
        pid_t pid;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        reading = ends[0];
        writing = ends[1];
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                fail_in_child(writing, 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_true(read(reading, text, sizeof text - 1) > 0);
        expect_contains(text, "base/test-assert.c:");
        expect_contains(text, ": assertion failed: number == 2\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_condition_that_holds_does_nothing),
                cmocka_unit_test(a_condition_that_does_not_hold_is_printed_and_aborts),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
