/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cli/core/exec-status.h"

static struct nd_error *parse(const char *text, int *ret) {
        return cli_exec_status_parse(text, strlen(text), ret);
}

static void a_command_that_ran_returns_its_exit_status([[maybe_unused]] void **state) {
        int code = -1;

        expect_ok(parse("{\"metadata\":{},\"status\":\"Success\"}", &code));
        assert_int_equal(code, 0);
        expect_ok(parse(
                "{\"status\":\"Failure\",\"message\":\"x\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
                "\"Other\",\"message\":\"1\"},{\"reason\":\"ExitCode\",\"message\":\"137\"}]}}",
                &code));
        assert_int_equal(code, 137);
}

static void a_command_that_could_not_run_returns_the_reason([[maybe_unused]] void **state) {
        int code = -1;

        expect_error(parse("{\"status\":\"Failure\",\"message\":\"no such file: nope\",\"reason\":\"InternalError\"}", &code),
                     ND_UNKNOWN, "no such file: nope");
        expect_error(
                parse("{\"status\":\"Failure\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
                      "\"message\":\"0\"}]}}",
                      &code),
                ND_UNKNOWN, "the command failed");
        expect_error(parse("[]", &code), ND_UNKNOWN, "the command failed");
        expect_error(parse("{", &code), ND_INVALID, "exit status of the command");
        assert_int_equal(code, -1);
}

static void a_command_that_could_not_be_started_has_the_exit_status_of_a_shell([[maybe_unused]] void **state) {
        int code = -1;

        expect_error_text(parse("{\"status\":\"Failure\",\"message\":\"Internal error occurred: error executing command in "
                                "container: execute in container '0af3': executable file `nosuch` not found in $PATH\","
                                "\"reason\":\"InternalError\",\"code\":500,\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
                                "\"message\":\"127\"}]}}",
                                &code),
                          "executable file `nosuch` not found in $PATH");
        assert_int_equal(code, EXEC_STATUS_NOT_FOUND);
        code = -1;
        expect_error_text(parse("{\"status\":\"Failure\",\"message\":\"it's: odd\",\"reason\":\"InternalError\",\"details\":"
                                "{\"causes\":[{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}",
                                &code),
                          "it's: odd");
        assert_int_equal(code, -1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_command_that_ran_returns_its_exit_status),
                cmocka_unit_test(a_command_that_could_not_run_returns_the_reason),
                cmocka_unit_test(a_command_that_could_not_be_started_has_the_exit_status_of_a_shell),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
