/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "base/clock.h"

static void the_clock_only_goes_forward([[maybe_unused]] void **state) {
        uint64_t before = nd_clock_ns();

        for (int i = 0; i < 1000; i++) {
                uint64_t now = nd_clock_ns();

                assert_true(now >= before);
                before = now;
        }
}

static void microseconds_and_nanoseconds_are_of_one_clock([[maybe_unused]] void **state) {
        uint64_t first = nd_clock_ns() / 1000, between = nd_clock_us(), last = nd_clock_ns() / 1000;

        assert_in_range(between, first, last);
        assert_int_equal(ND_SECOND_US, 1000 * ND_MS_US);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_clock_only_goes_forward),
                cmocka_unit_test(microseconds_and_nanoseconds_are_of_one_clock),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
