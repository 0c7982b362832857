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

static void times_are_written_as_kubernetes_writes_them([[maybe_unused]] void **state) {
        char text[ND_CLOCK_TEXT];

        assert_string_equal(nd_clock_text(1794880923, text), "2026-11-17T02:02:03Z");
        assert_string_equal(nd_clock_text(0, text), "1970-01-01T00:00:00Z");
        assert_string_equal(nd_clock_text_us(UINT64_C(1794880923000004999), text), "2026-11-17T02:02:03.000004Z");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_clock_only_goes_forward),
                cmocka_unit_test(microseconds_and_nanoseconds_are_of_one_clock),
                cmocka_unit_test(times_are_written_as_kubernetes_writes_them),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
