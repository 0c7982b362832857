/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unit/scratch.h>

#include "base/text.h"
#include "rootless/core/node.h"
#include "sys/file.h"

static void names_are_directories_hosts_and_instances_at_once([[maybe_unused]] void **state) {
        assert_true(nd_node_name_valid("default") && nd_node_name_valid("a1-b"));
        assert_false(nd_node_name_valid("") || nd_node_name_valid("-a") || nd_node_name_valid("a-") ||
                     nd_node_name_valid("A"));
        assert_false(nd_node_name_valid("..") || nd_node_name_valid("a/b") || nd_node_name_valid("a.b") ||
                     nd_node_name_valid("a b"));
        assert_false(nd_node_name_valid("a234567890123456789012345678901234567890123456789"));
}

static void a_record_is_read_as_it_was_written([[maybe_unused]] void **state) {
        struct nd_node_record record = {.pid = 77,
                                        .started = 123456789,
                                        .boot = (char *) "b",
                                        .net = (char *) "pasta",
                                        .data = (char *) "/d\n",
                                        .mtu = 1400,
                                        .ids = 65537};
        nd_cleanup(nd_node_record_done) struct nd_node_record again = {};
        nd_autofree char *text = nd_node_record_text(&record);

        expect_ok(nd_node_record_parse(text, strlen(text), &again));
        assert_int_equal(again.pid, 77);
        assert_int_equal(again.started, 123456789);
        assert_string_equal(again.data, "/d\n");
        assert_null(again.cgroup);
        expect_error(nd_node_record_parse("{\"pid\": 1}", 10, &again), ND_INVALID, "not the record");
        expect_error(nd_node_record_parse("[]", 2, &again), ND_INVALID, "not the record");
}

static struct nd_node_record self(void) {
        struct nd_node_record record = {.pid = getpid(), .net = nd_strdup("none"), .mtu = 1500};

        expect_ok(nd_process_started(getpid(), &record.started));
        expect_ok(nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &record.boot));
        record.boot[strcspn(record.boot, "\n")] = '\0';
        return record;
}

static void a_node_lives_while_its_very_process_does([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE, absent = ND_NODE_NONE;
        nd_cleanup(nd_node_record_done) struct nd_node_record record = self(), found = {};
        nd_autoclose int pidfd = -EBADF;

        assert_int_equal(chmod(top, 0700), 0);
        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        expect_error(nd_node_open("n", false, &absent), ND_NOT_FOUND, "no node 'n'");
        expect_ok(nd_node_open("n", true, &node));
        expect_error(nd_node_holder(&node, &found, &pidfd), ND_NOT_FOUND, "does not run");
        expect_ok(nd_node_save(&node, &record));
        expect_ok(nd_node_holder(&node, &found, &pidfd));
        assert_int_equal(found.pid, getpid());
        nd_node_record_done(&found);
        nd_close_fd(&pidfd);

        record.started++; /* another process that got the number */
        expect_ok(nd_node_save(&node, &record));
        expect_error(nd_node_holder(&node, &found, &pidfd), ND_NOT_FOUND, "another one by now");
        record.started--;
        record.boot[0] = '!';
        expect_ok(nd_node_save(&node, &record));
        expect_error(nd_node_holder(&node, &found, &pidfd), ND_NOT_FOUND, "earlier boot");
        nd_node_clear(&node);
        expect_error(nd_node_holder(&node, &found, &pidfd), ND_NOT_FOUND, "does not run");
}

static void a_lock_is_held_by_one([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(nd_node_done) struct nd_node first = ND_NODE_NONE, second = ND_NODE_NONE;

        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        expect_ok(nd_node_open("n", true, &first));
        expect_ok(nd_node_open("n", true, &second));
        expect_ok(nd_node_lock(&first));
        expect_error(nd_node_lock(&second), ND_EXISTS, "another process");
        nd_close_fd(&first.lock_fd);
        expect_ok(nd_node_lock(&second));
        nd_node_clear(&second);
        expect_ok(nd_node_remove(&second));
        assert_false(scratch_has(top, "nodens/n"));
}

static void a_directory_that_others_can_enter_is_refused([[maybe_unused]] void **state) {
        scratch_directory top = scratch_make();
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE;
        nd_autofree char *path = nd_format("%s/nodens", top);

        assert_int_equal(setenv("XDG_RUNTIME_DIR", top, 1), 0);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(chmod(path, 0755), 0);
        expect_error(nd_node_open("n", true, &node), ND_DENIED, "chmod 0700");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_are_directories_hosts_and_instances_at_once),
                cmocka_unit_test(a_record_is_read_as_it_was_written),
                cmocka_unit_test(a_node_lives_while_its_very_process_does),
                cmocka_unit_test(a_lock_is_held_by_one),
                cmocka_unit_test(a_directory_that_others_can_enter_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
