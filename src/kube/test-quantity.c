/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <errno.h>

#include "kube/quantity.h"

static void is(const char *text, int64_t expected) {
        int64_t value = -77;

        assert_int_equal(nd_quantity_parse(text, &value), 0);
        assert_int_equal(value, expected);
}

static void is_none(const char *text, int expected) {
        int64_t value = -77;

        assert_int_equal(nd_quantity_parse(text, &value), expected);
        assert_int_equal(value, -77);
}

static void amounts_are_read_with_every_suffix([[maybe_unused]] void **state) {
        is("0", 0);
        is("10", 10);
        is("10k", 10000);
        is("10M", 10000000);
        is("1G", 1000000000);
        is("1T", 1000000000000);
        is("1P", 1000000000000000);
        is("9E", 9000000000000000000);
        is("1Ki", 1024);
        is("3Mi", 3 << 20);
        is("1Gi", 1 << 30);
        is("1Ti", (int64_t) 1 << 40);
        is("1Pi", (int64_t) 1 << 50);
        is("7Ei", (int64_t) 7 << 60);
        is("1000m", 1);
        is("2000000u", 2);
        is("3000000000n", 3);
}

static void exponents_signs_and_fractions_are_read([[maybe_unused]] void **state) {
        is("1e3", 1000);
        is("1E3", 1000);
        is("1E+3", 1000);
        is("1000e-3", 1);
        is("12345e-2", 124); /* rounded up */
        is("+5", 5);
        is("-5", -5);
        is("-1500m", -1); /* rounded up, too */
        is("1500m", 2);
        is("1n", 1);
        is(".5k", 500);
        is("5.", 5);
        is("1.5Gi", 3 << 29);
        is("0.000000000000000001E", 1);
        is("00000000000000000000000000000000000000001", 1);
        is("10000000000000000000000e-4", 1000000000000000000);
}

static void invalid_quantities_are_rejected([[maybe_unused]] void **state) {
        static const char *const texts[] = {"",    "k",    "-",     "+",   ".",   "1 ",           " 1",   "1K",
                                            "1mi", "1kk",  "1.2.3", "1e",  "e3",  "1e+",          "1e3k", "1Kib",
                                            "--1", "0x10", "1,5",   "1\n", "inf", "1e99999999999"};

        for (size_t i = 0; i < nd_count_of(texts); i++)
                is_none(texts[i], -EINVAL);
}

static void quantities_out_of_range_have_their_own_error([[maybe_unused]] void **state) {
        is_none("8Ei", -ERANGE);
        is_none("10E", -ERANGE);
        is_none("9223372036854775808", -ERANGE);
        is_none("1e400", -ERANGE);
        is_none("1e999999999", -ERANGE);
        is_none("1234567890123456789", -ERANGE); /* more digits than supported */
        is("1e-400", 1);
        is("0e999999999", 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(amounts_are_read_with_every_suffix),
                cmocka_unit_test(exponents_signs_and_fractions_are_read),
                cmocka_unit_test(invalid_quantities_are_rejected),
                cmocka_unit_test(quantities_out_of_range_have_their_own_error),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
