/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "rootless/components/notification.h"

static struct rootless_notification parse(const char *text) {
        struct rootless_notification n;

        rootless_notification_parse(text, strlen(text), &n);
        return n;
}

static void ready_and_status_are_read([[maybe_unused]] void **state) {
        struct rootless_notification n = parse("READY=1\nSTATUS=serving\nMAINPID=12\n");

        assert_true(n.ready);
        assert_true(n.has_status);
        assert_string_equal(n.status, "serving");
}

static void other_assignments_are_ignored([[maybe_unused]] void **state) {
        static const char *const others[] = {"",         "READY=0",    "READY=11",    " READY=1",
                                             "XREADY=1", "WATCHDOG=1", "FDSTORE=1\n", "BARRIER=1",
                                             "READY",    "STATUS",     "STOPPING=1",  "MAINPID=1\n\n"};

        for (size_t i = 0; i < nd_count_of(others); i++) {
                struct rootless_notification n = parse(others[i]);

                assert_false(n.ready);
                assert_false(n.has_status);
        }
}

static void a_status_becomes_one_printable_line([[maybe_unused]] void **state) {
        static const char bytes[] = "STATUS=a\x1b[2Jb\0c\rd\xff";
        struct rootless_notification n;

        rootless_notification_parse(bytes, sizeof bytes - 1, &n);
        assert_string_equal(n.status, "a [2Jb c d\xef\xbf\xbd");
}

static void a_long_status_is_cut_and_a_long_message_ignored([[maybe_unused]] void **state) {
        char bytes[NOTIFICATION_BYTES + 1];
        struct rootless_notification n;

        memset(bytes, 'x', sizeof bytes);
        memcpy(bytes, "READY=1\nSTATUS=", 15);
        rootless_notification_parse(bytes, NOTIFICATION_BYTES, &n);
        assert_true(n.ready);
        assert_int_equal(strlen(n.status), NOTIFICATION_STATUS_BYTES);
        rootless_notification_parse(bytes, sizeof bytes, &n);
        assert_false(n.ready);
        assert_false(n.has_status);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ready_and_status_are_read),
                cmocka_unit_test(other_assignments_are_ignored),
                cmocka_unit_test(a_status_becomes_one_printable_line),
                cmocka_unit_test(a_long_status_is_cut_and_a_long_message_ignored),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
