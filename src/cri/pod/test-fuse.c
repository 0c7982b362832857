/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <string.h>

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

static void a_fuse_mount_is_found_with_its_path([[maybe_unused]] void **state) {
        static const struct {
                const char *line, *path; /* nullptr = not a FUSE mount */
                uint32_t connection;
        } cases[] = {
                {"36 35 0:45 / /mnt rw,nosuid - fuse.sshfs host rw", "/mnt", 45},
                {"36 35 0:46 /sub /a\\040b\\134c rw shared:1 - fuse x rw", "/a b\\c", 46},
                {"36 35 0:46 / /end\\04 rw - fuse x rw", "/end\\04", 46},
                {"36 35 0:46 /", nullptr, 0},
                {"36 35 0:47 / - fuse x", "-", 47},
                {"36 35 8:1 / /mnt rw - fuseblk /dev/sda1 rw", nullptr, 0},
                {"x 35 0:45 / /mnt rw - fuse x", nullptr, 0},
                {"", nullptr, 0},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_autofree char *path = nullptr;
                uint32_t connection = 0;

                assert_int_equal(cri_fuse_parse_mount(cases[i].line, strlen(cases[i].line), &connection, &path),
                                 cases[i].path != nullptr);
                assert_int_equal(connection, cases[i].connection);
                if (cases[i].path)
                        assert_string_equal(path, cases[i].path);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_fuse_connection_line_identifies_a_connection),
                cmocka_unit_test(a_fuse_mount_is_found_with_its_path),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
