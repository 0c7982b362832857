/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

static void an_error_has_the_operation_and_then_the_reason([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_DENIED, EACCES, "open '%s'", "/x");

        assert_int_equal(nd_error_code(error), ND_DENIED);
        assert_int_equal(nd_error_errno(error), EACCES);
        assert_string_equal(nd_error_text(error), "open '/x': Permission denied");
}

static void an_error_without_an_errno_is_only_its_text([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_INVALID, 0, "no");

        assert_string_equal(nd_error_text(error), "no");
        assert_int_equal(nd_error_errno(error), 0);
}

static void an_unknown_errno_does_not_crash([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_INTERNAL, 99999, "do");

        assert_string_equal(nd_error_text(error), "do: unknown error");
}

static void wrapping_puts_the_fact_in_front_and_keeps_code_and_errno([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_DENIED, EACCES, "open '/x'");

        error = nd_error_wrap(nd_take_ptr(error), "pod '%s'", "a");
        error = nd_error_wrap(nd_take_ptr(error), "node");
        assert_string_equal(nd_error_text(error), "node: pod 'a': open '/x': Permission denied");
        assert_int_equal(nd_error_code(error), ND_DENIED);
        assert_int_equal(nd_error_errno(error), EACCES);
}

static void wrapping_no_error_gives_no_error([[maybe_unused]] void **state) {
        assert_null(nd_error_wrap(nullptr, "pod"));
        assert_null(nd_error_recode(nullptr, ND_INTERNAL));
        assert_int_equal(nd_error_code(nullptr), ND_OK);
        assert_int_equal(nd_error_errno(nullptr), 0);
        assert_string_equal(nd_error_text(nullptr), "");
        nd_error_free(nullptr);
}

static void a_received_error_keeps_its_errno_out_of_the_text([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_received(ND_EXHAUSTED, ENOSPC, "write 'x': No space left on device %s");

        assert_string_equal(nd_error_text(error), "write 'x': No space left on device %s");
        assert_int_equal(nd_error_errno(error), ENOSPC);
        error = nd_error_recode(nd_take_ptr(error), ND_DATA_LOSS);
        assert_int_equal(nd_error_code(error), ND_DATA_LOSS);
}

static void every_code_has_a_distinct_name([[maybe_unused]] void **state) {
        for (int a = ND_OK; a <= ND_DATA_LOSS; a++)
                for (int b = ND_OK; b < a; b++)
                        assert_string_not_equal(nd_error_code_name((enum nd_error_code) a),
                                                nd_error_code_name((enum nd_error_code) b));
        assert_string_equal(nd_error_code_name((enum nd_error_code) 1000), "unknown");
}

static void an_errno_becomes_the_code_that_fits([[maybe_unused]] void **state) {
        static const struct {
                int error_number;
                enum nd_error_code code;
        } cases[] = {{0, ND_OK},
                     {ENOENT, ND_NOT_FOUND},
                     {EEXIST, ND_EXISTS},
                     {EPERM, ND_DENIED},
                     {EMFILE, ND_EXHAUSTED},
                     {ENOSPC, ND_EXHAUSTED},
                     {ETIMEDOUT, ND_DEADLINE},
                     {ENOSYS, ND_UNIMPLEMENTED},
                     {EIO, ND_INTERNAL}};

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_int_equal(nd_error_code_of(cases[i].error_number), cases[i].code);
}

static struct nd_error *tries(bool fails, bool *ret_went_on) {
        nd_try(fails ? nd_error_new(ND_ABORTED, 0, "stop") : nullptr);
        *ret_went_on = true;
        return nullptr;
}

static void try_returns_at_the_first_error([[maybe_unused]] void **state) {
        bool went_on = false;

        expect_error(tries(true, &went_on), ND_ABORTED, "stop");
        assert_false(went_on);
        expect_ok(tries(false, &went_on));
        assert_true(went_on);
}

static void an_ignored_error_is_freed_and_no_error_is_fine([[maybe_unused]] void **state) {
        nd_ignore(nd_error_new(ND_ABORTED, 0, "stop")); /* a sanitizer reports a leak */
        nd_ignore(nullptr);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_error_has_the_operation_and_then_the_reason),
                cmocka_unit_test(an_error_without_an_errno_is_only_its_text),
                cmocka_unit_test(an_unknown_errno_does_not_crash),
                cmocka_unit_test(wrapping_puts_the_fact_in_front_and_keeps_code_and_errno),
                cmocka_unit_test(wrapping_no_error_gives_no_error),
                cmocka_unit_test(a_received_error_keeps_its_errno_out_of_the_text),
                cmocka_unit_test(every_code_has_a_distinct_name),
                cmocka_unit_test(an_errno_becomes_the_code_that_fits),
                cmocka_unit_test(try_returns_at_the_first_error),
                cmocka_unit_test(an_ignored_error_is_freed_and_no_error_is_fine),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
