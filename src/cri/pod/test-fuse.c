/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "cri/pod/fuse.h"

static void only_the_fuse_connection_line_identifies_a_connection([[maybe_unused]] void **state) {
        static const char
                right[] = "pos:\t0\nflags:\t02100002\nmnt_id:\t31\nino:\t5\nfuse_connection:\t45\n",
                locked[] = "pos:\t0\nflags:\t02\nmnt_id:\t31\nino:\t5\nlock:\t1: FLOCK  ADVISORY\nfuse_connection:\t7\n",
                forged[] = "pos:\t0\nflags:\t02\nmnt_id:\t12\nino:\t9\nsize:\t4096\nname:\tx\nfuse_connection:\t45\n";
        uint32_t number = 0;

        assert_true(cri_fuse_parse_descriptor(right, &number));
        assert_int_equal(number, 45);
        assert_true(cri_fuse_parse_descriptor(locked, &number));
        assert_int_equal(number, 7);
        assert_false(cri_fuse_parse_descriptor(forged, &number));
        assert_false(cri_fuse_parse_descriptor("", &number));
        assert_false(cri_fuse_parse_descriptor("pos:\t0\nfuse_connection:\tmany\n", &number));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_fuse_connection_line_identifies_a_connection),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
