/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/mount.h"
#include "sys/worker.h"

static void the_v2_line_is_found_wherever_it_stands([[maybe_unused]] void **state) {
        expect_text(nd_cgroup_path_of("0::/a/b\n"), "/a/b");
        expect_text(nd_cgroup_path_of("0::/"), "/");
        expect_text(nd_cgroup_path_of("12:memory:/x\n1:name=systemd:/y\n0::/z\n"), "/z");
        expect_text(nd_cgroup_path_of("0::/with:colon and blank\n"), "/with:colon and blank");
}

static void without_a_v2_line_there_is_no_path([[maybe_unused]] void **state) {
        assert_null(nd_cgroup_path_of(""));
        assert_null(nd_cgroup_path_of("\n\n"));
        assert_null(nd_cgroup_path_of("12:memory:/x\n"));
        assert_null(nd_cgroup_path_of("10::/x\n"));
        assert_null(nd_cgroup_path_of("0::relative\n"));
        assert_null(nd_cgroup_path_of("0::"));
}

static void a_controller_is_a_whole_word([[maybe_unused]] void **state) {
        assert_true(nd_cgroup_has("cpuset cpu io memory", "cpu"));
        assert_true(nd_cgroup_has("cpu\n", "cpu"));
        assert_false(nd_cgroup_has("cpuset io", "cpu"));
        assert_false(nd_cgroup_has("", "cpu"));
        assert_false(nd_cgroup_has(nullptr, "cpu"));
}

static void what_is_found_here_agrees_with_the_mount([[maybe_unused]] void **state) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        struct statfs fs;
        bool unified = statfs("/sys/fs/cgroup", &fs) == 0 && (unsigned long) fs.f_type == CGROUP2_SUPER_MAGIC;

        expect_ok(nd_cgroup_discover(&cgroup));
        assert_int_equal(cgroup.layout == ND_CGROUP_UNIFIED, unified);
        assert_int_equal(cgroup.own != nullptr, unified);
        if (cgroup.own) {
                assert_int_equal(cgroup.own[0], '/');
                assert_non_null(cgroup.controllers);
        }
}

/* Discovers with a filesystem of this type mounted over /sys/fs/cgroup. */
static struct nd_error *discover_on(void *type, [[maybe_unused]] int *ret_fd) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};

        nd_try(nd_mount_namespace_private());
        if (mount(type, "/sys/fs/cgroup", type, 0, nullptr) < 0)
                return nd_error_new(ND_DENIED, errno, "mount");
        nd_try(nd_cgroup_discover(&cgroup));
        return nd_error_new(ND_ABORTED, 0, "layout %d", (int) cgroup.layout);
}

static void the_layout_is_told_by_the_filesystem_that_is_mounted([[maybe_unused]] void **state) {
        struct nd_error *error = nd_worker_run("cgroup", discover_on, (void *) "tmpfs", 5 * ND_SECOND_US, nullptr);

        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                skip_because("mounting needs privilege");
        }
        expect_error(error, ND_ABORTED, "layout 1"); /* a tmpfs with v1 hierarchies below it */
        expect_error(nd_worker_run("cgroup", discover_on, (void *) "sysfs", 5 * ND_SECOND_US, nullptr), ND_ABORTED,
                     "layout 0");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_v2_line_is_found_wherever_it_stands),
                cmocka_unit_test(without_a_v2_line_there_is_no_path),
                cmocka_unit_test(a_controller_is_a_whole_word),
                cmocka_unit_test(what_is_found_here_agrees_with_the_mount),
                cmocka_unit_test(the_layout_is_told_by_the_filesystem_that_is_mounted),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
