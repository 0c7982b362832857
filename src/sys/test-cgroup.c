/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/mount.h"
#include "sys/worker.h"

static void the_v2_line_is_found_at_any_position([[maybe_unused]] void **state) {
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

static void a_value_is_found_by_its_whole_key([[maybe_unused]] void **state) {
        static const char text[] = "inactive_file 1\nfile 22\nfile_mapped 333\nbroken x\nempty \n";
        uint64_t value = 0;

        assert_true(nd_cgroup_key(text, "file", &value));
        assert_int_equal(value, 22);
        assert_true(nd_cgroup_key(text, "file_mapped", &value));
        assert_int_equal(value, 333);
        assert_false(nd_cgroup_key(text, "active_file", &value));
        assert_false(nd_cgroup_key(text, "broken", &value));
        assert_false(nd_cgroup_key(text, "empty", &value));
        assert_false(nd_cgroup_key("", "file", &value));
}

static void a_key_is_summed_over_all_devices([[maybe_unused]] void **state) {
        uint64_t value = 7;

        assert_true(nd_cgroup_sum("8:0 rbytes=1 wbytes=2\n8:16 rbytes=40 dbytes=9\n", "rbytes", &value));
        assert_int_equal(value, 41);
        assert_false(nd_cgroup_sum("8:0 xrbytes=1\n", "rbytes", &value));
        assert_false(nd_cgroup_sum("", "rbytes", &value));
        assert_int_equal(value, 41);
}

static void no_limit_is_the_highest_number([[maybe_unused]] void **state) {
        uint64_t value;

        assert_true(nd_cgroup_number("max\n", &value));
        assert_true(value == UINT64_MAX);
        assert_true(nd_cgroup_number("123\n", &value));
        assert_int_equal(value, 123);
        assert_false(nd_cgroup_number("", &value));
        assert_false(nd_cgroup_number("maximum\n", &value));
        assert_false(nd_cgroup_number("-1\n", &value));
}

/* Creates a cgroup with a child "below". */
static void make_pair(int *ret_parent, char **ret_name, int *ret_child, char **ret_path) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        unsigned number = 0;

        /* Not by our PID: a test in another PID namespace may have the same, and the same
         * cgroups. */
        assert_int_equal(getrandom(&number, sizeof number, 0), sizeof number);
        expect_ok(nd_cgroup_discover(&cgroup));
        if (cgroup.layout != ND_CGROUP_UNIFIED || !cgroup.writable || geteuid() != 0)
                skip_because("there is no cgroup v2 of ours");
        *ret_name = nd_format("nodens-test-%x", number);
        expect_ok(nd_cgroup_open(cgroup.own, ret_parent));
        expect_ok(nd_cgroup_make(*ret_parent, *ret_name));
        expect_error(nd_cgroup_make(*ret_parent, *ret_name), ND_EXISTS, *ret_name);
        *ret_path = nd_format("%s/%s", nd_streq(cgroup.own, "/") ? "" : cgroup.own, *ret_name);
        expect_ok(nd_cgroup_open(*ret_path, ret_child));
        expect_ok(nd_cgroup_make(*ret_child, "below"));
}

static pid_t start_process(const char *path, const char *below) {
        nd_autofree char *procs = nd_format(ND_CGROUP_MOUNT "%s%s/cgroup.procs", path, below), *text = nullptr;
        nd_autoclose int fd = open(procs, O_WRONLY | O_CLOEXEC);
        pid_t pid = fork();

        if (pid == 0) {
                (void) pause();
                _exit(0);
        }
        text = nd_format("%d", pid);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        return pid;
}

/* A process of ours in a cgroup of ours: killed, lifted, removed. */
static void a_cgroup_can_be_killed_emptied_and_removed([[maybe_unused]] void **state) {
        nd_autofree char *name = nullptr, *path = nullptr;
        nd_autoclose int parent = -EBADF, child = -EBADF;
        int status;
        pid_t pid;

        make_pair(&parent, &name, &child, &path);
        pid = start_process(path, "/below");
        assert_false(nd_cgroup_remove(parent, name)); /* a process is in it */
        nd_cgroup_lift(child, "below", child);
        assert_true(nd_cgroup_remove(child, "below"));
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* and it is alive */
        expect_ok(nd_cgroup_kill(child));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        assert_true(nd_cgroup_remove(parent, name));
        assert_true(nd_cgroup_remove(parent, name)); /* it does not exist any more */
        expect_ok(nd_cgroup_kill(child));
        expect_error(nd_cgroup_open(path, &status), ND_NOT_FOUND, name);
}

static void clearing_a_cgroup_kills_its_processes_and_removes_it([[maybe_unused]] void **state) {
        nd_autofree char *name = nullptr, *path = nullptr, *absent = nullptr;
        nd_autoclose int parent = -EBADF, child = -EBADF;
        pid_t pids[2];
        int status;

        make_pair(&parent, &name, &child, &path);
        pids[0] = start_process(path, "");
        pids[1] = start_process(path, "/below");
        expect_ok(nd_cgroup_clear(path, 60 * ND_SECOND_US));
        expect_error(nd_cgroup_open(path, &status), ND_NOT_FOUND, name);
        for (size_t i = 0; i < nd_count_of(pids); i++) {
                /* Already dead: nothing to wait for. */
                assert_int_equal(waitpid(pids[i], &status, WNOHANG), pids[i]);
                assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
        /* It does not exist any more, and the parent may not either. */
        expect_ok(nd_cgroup_clear(path, 60 * ND_SECOND_US));
        absent = nd_format("%s/below/deeper", path);
        expect_ok(nd_cgroup_clear(absent, 60 * ND_SECOND_US));
        expect_error(nd_cgroup_clear("/", 0), ND_INTERNAL, "cannot clear cgroup");
}

static void the_discovered_layout_agrees_with_the_mount([[maybe_unused]] void **state) {
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

/* Runs the discovery with a filesystem of this type mounted over /sys/fs/cgroup. */
static struct nd_error *discover_on(void *type, [[maybe_unused]] int *ret_fd) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};

        nd_try(nd_mount_namespace_private());
        if (mount(type, "/sys/fs/cgroup", type, 0, nullptr) < 0)
                return nd_error_new(ND_DENIED, errno, "mount");
        nd_try(nd_cgroup_discover(&cgroup));
        return nd_error_new(ND_ABORTED, 0, "layout %d", (int) cgroup.layout);
}

static void the_layout_follows_from_the_mounted_filesystem([[maybe_unused]] void **state) {
        struct nd_error *error = nd_worker_run("cgroup", discover_on, (void *) "tmpfs", 60 * ND_SECOND_US, nullptr);

        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                skip_because("mounting needs privilege");
        }
        expect_error(error, ND_ABORTED, "layout 1"); /* a tmpfs with v1 hierarchies below it */
        expect_error(nd_worker_run("cgroup", discover_on, (void *) "sysfs", 60 * ND_SECOND_US, nullptr), ND_ABORTED,
                     "layout 0");
}

static void a_slice_is_found_by_its_name([[maybe_unused]] void **state) {
        nd_autofree char *nested = nd_cgroup_slice("a-b-c.slice"), *flat = nd_cgroup_slice("system.slice");
        char longest[2048];

        assert_string_equal(nested, "/a.slice/a-b.slice/a-b-c.slice");
        assert_string_equal(flat, "/system.slice");
        assert_null(nd_cgroup_slice("a-b"));
        assert_null(nd_cgroup_slice(".slice"));
        assert_null(nd_cgroup_slice("a/b.slice"));
        memset(longest, '-', sizeof longest);
        memcpy(longest + sizeof longest - sizeof ".slice", ".slice", sizeof ".slice");
        assert_null(nd_cgroup_slice(longest)); /* its path would have two million bytes */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_slice_is_found_by_its_name),
                cmocka_unit_test(the_v2_line_is_found_at_any_position),
                cmocka_unit_test(without_a_v2_line_there_is_no_path),
                cmocka_unit_test(a_controller_is_a_whole_word),
                cmocka_unit_test(a_value_is_found_by_its_whole_key),
                cmocka_unit_test(a_key_is_summed_over_all_devices),
                cmocka_unit_test(no_limit_is_the_highest_number),
                cmocka_unit_test(a_cgroup_can_be_killed_emptied_and_removed),
                cmocka_unit_test(clearing_a_cgroup_kills_its_processes_and_removes_it),
                cmocka_unit_test(the_discovered_layout_agrees_with_the_mount),
                cmocka_unit_test(the_layout_follows_from_the_mounted_filesystem),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
