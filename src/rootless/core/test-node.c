/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "rootless/core/node.h"
#include "sys/child.h"
#include "sys/file.h"
#include "sys/process.h"

static void names_are_valid_for_directories_hosts_and_units([[maybe_unused]] void **state) {
        assert_true(rootless_node_name_valid("default") && rootless_node_name_valid("a1-b"));
        assert_false(rootless_node_name_valid("") || rootless_node_name_valid("-a") || rootless_node_name_valid("a-") ||
                     rootless_node_name_valid("A"));
        assert_false(rootless_node_name_valid("..") || rootless_node_name_valid("a/b") || rootless_node_name_valid("a.b") ||
                     rootless_node_name_valid("a b"));
        assert_false(rootless_node_name_valid("a234567890123456789012345678901234567890123456789"));
}

static void a_record_survives_a_round_trip([[maybe_unused]] void **state) {
        struct rootless_node_record record = {.pid = 77,
                                              .started = 123456789,
                                              .boot = (char *) "b",
                                              .net = (char *) "pasta",
                                              .data = (char *) "/d\n",
                                              .mtu = 1400,
                                              .ids = 65537};
        nd_cleanup(rootless_node_record_done) struct rootless_node_record again = {};
        nd_autofree char *text = rootless_node_record_format(&record);

        expect_ok(rootless_node_record_parse(text, strlen(text), &again));
        assert_int_equal(again.pid, 77);
        assert_int_equal(again.started, 123456789);
        assert_string_equal(again.data, "/d\n");
        assert_null(again.cgroup);
        expect_error(rootless_node_record_parse("{\"pid\": 1}", 10, &again), ND_INVALID, "invalid node record");
        expect_error(rootless_node_record_parse("[]", 2, &again), ND_INVALID, "invalid node record");
}

static struct rootless_node_record self(void) {
        struct rootless_node_record record = {.pid = getpid(), .net = nd_strdup("none"), .mtu = 1500};

        expect_ok(nd_process_start_time(getpid(), &record.started));
        expect_ok(nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &record.boot));
        record.boot[strcspn(record.boot, "\n")] = '\0';
        return record;
}

static void a_node_runs_as_long_as_its_init_process([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE, absent = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = self(), found = {};
        nd_autoclose int pidfd = -EBADF;

        assert_int_equal(chmod(top, 0700), 0);
        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        expect_error(rootless_node_open("n", false, &absent), ND_NOT_FOUND,
                     "node 'n' is not running; 'nodens-rootless up --name n' starts it");
        expect_ok(rootless_node_open("n", true, &node));
        expect_error(rootless_node_open_init(&node, &found, &pidfd), ND_NOT_FOUND, "is not running");
        expect_ok(rootless_node_record_save(&node, &record));
        expect_ok(rootless_node_open_init(&node, &found, &pidfd));
        assert_int_equal(found.pid, getpid());
        rootless_node_record_done(&found);
        nd_close_fd(&pidfd);

        record.started++; /* another process with the same PID */
        expect_ok(rootless_node_record_save(&node, &record));
        expect_error(rootless_node_open_init(&node, &found, &pidfd), ND_NOT_FOUND, "was reused");
        record.started--;
        record.boot[0] = '!';
        expect_ok(rootless_node_record_save(&node, &record));
        expect_error(rootless_node_open_init(&node, &found, &pidfd), ND_NOT_FOUND, "earlier boot");
        rootless_node_clear(&node);
        expect_error(rootless_node_open_init(&node, &found, &pidfd), ND_NOT_FOUND, "is not running");
}

static void a_lock_is_held_by_one([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(rootless_node_done) struct rootless_node first = NODE_NONE, second = NODE_NONE;

        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        expect_ok(rootless_node_open("n", true, &first));
        expect_ok(rootless_node_open("n", true, &second));
        expect_ok(rootless_node_lock(&first));
        expect_error(rootless_node_lock(&second), ND_EXISTS, "another process");
        nd_close_fd(&first.lock_fd);
        expect_ok(rootless_node_lock(&second));
        rootless_node_clear(&second);
        expect_ok(rootless_node_remove(&second));
        assert_false(scratch_has(top, "nodens/n"));
}

static void a_directory_that_others_can_enter_is_refused([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_autofree char *path = nd_format("%s/nodens", top);

        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chmod(path, 0755), 0);
        expect_error(rootless_node_open("n", true, &node), ND_DENIED, "chmod 0700");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_valid_for_directories_hosts_and_units),
                cmocka_unit_test(a_record_survives_a_round_trip),
                cmocka_unit_test(a_node_runs_as_long_as_its_init_process),
                cmocka_unit_test(a_lock_is_held_by_one),
                cmocka_unit_test(a_directory_that_others_can_enter_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
