/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/stats/usage.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/tree.h"

static void pressure_is_parsed([[maybe_unused]] void **state) {
        struct cri_pressures p;

        assert_true(cri_usage_parse_pressure(
                "some avg10=1.50 avg60=0.25 avg300=100.00 total=42\nfull avg10=0.00 avg60=0.00 avg300=0.01 total=7\n", &p));
        assert_true(p.known && p.some.average10 == 1.5 && p.some.average60 == 0.25 && p.some.average300 == 100 &&
                    p.some.total == 42000);
        assert_true(p.full.average300 == 0.01 && p.full.total == 7000);
        assert_true(cri_usage_parse_pressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", &p));
        assert_int_equal(p.full.total, 0);
}

static void malformed_pressure_is_rejected([[maybe_unused]] void **state) {
        static const char *const cases[] = {
                "",
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
                "some avg10=0.00 avg60=0.00 avg300=0.00\n",
                "some avg10=0.00 avg60=0.00 total=0\n",
                "some avg10=x avg60=0.00 avg300=0.00 total=0\n",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=18446744073709551615\n",
                "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=\n",
        };
        struct cri_pressures p = {};

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_false(cri_usage_parse_pressure(cases[i], &p));
        assert_false(p.known);
}

static void network_counters_are_parsed_per_interface([[maybe_unused]] void **state) {
        struct cri_network_usage n;

        cri_usage_parse_network(
                "Inter-|   Receive                                                |  Transmit\n"
                " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
                "    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0\n"
                "  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                "net1:18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
                &n);
        assert_true(n.at > 0);
        assert_int_equal(n.count, 2);
        assert_string_equal(n.interfaces[0].name, "eth0");
        assert_int_equal(n.interfaces[0].received, 1);
        assert_int_equal(n.interfaces[0].received_packets, 2);
        assert_int_equal(n.interfaces[0].received_errors, 3);
        assert_int_equal(n.interfaces[0].received_dropped, 4);
        assert_int_equal(n.interfaces[0].sent, 9);
        assert_int_equal(n.interfaces[0].sent_packets, 10);
        assert_int_equal(n.interfaces[0].sent_errors, 11);
        assert_int_equal(n.interfaces[0].sent_dropped, 12);
        assert_string_equal(n.interfaces[1].name, "net1");
        assert_true(n.interfaces[1].received == UINT64_MAX);
}

static void an_incomplete_line_of_counters_is_ignored([[maybe_unused]] void **state) {
        struct cri_network_usage n;

        cri_usage_parse_network("eth0: 1 2 3\neth1:\n: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                                "a-name-that-is-too-long: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                                "eth2: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 -16\neth3: 1 2 3 4 5 6 7 8",
                                &n);
        assert_int_equal(n.count, 0);
}

static void a_tree_is_counted_with_each_file_once([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *tree = nd_format("%s/tree", d), *one = nd_format("%s/tree/one", d),
                         *two = nd_format("%s/tree/sub/two", d);
        nd_autofree char *link = nd_format("%s/tree/link", d), *bytes = nd_calloc(1, 1 << 20);
        struct cri_tree_usage u;

        memset(bytes, 'x', 1 << 20);
        scratch_mkdir(d, "tree/sub");
        scratch_write(d, "tree/one", bytes, 1 << 20);
        assert_int_equal(linkat(AT_FDCWD, one, AT_FDCWD, two, 0), 0);
        assert_int_equal(symlink("/", link), 0);
        expect_ok(cri_usage_of_tree(AT_FDCWD, tree, 60 * ND_SECOND_US, &u));
        assert_int_equal(u.inodes, 4); /* tree, sub, the file with two names, the link */
        assert_true(u.bytes >= 1 << 20 && u.bytes < 2 << 20);
        assert_true(u.at > 0 && u.filesystem_bytes > u.bytes && u.filesystem_inodes >= u.free_inodes);
        expect_ok(cri_usage_of_tree(AT_FDCWD, link, 60 * ND_SECOND_US, &u));
        assert_int_equal(u.inodes, 1); /* links are not followed */
        expect_error(cri_usage_of_tree(AT_FDCWD, "/no/such/tree", ND_SECOND_US, &u), ND_NOT_FOUND, "/no/such/tree");
}

/* Creates this many nested directories, with a file of 1 MiB in the last. */
static void make_deep(const char *top, unsigned levels) {
        nd_autofree char *bytes = nd_calloc(1, 1 << 20);
        nd_autoclose int at = -EBADF, file = -EBADF;

        expect_ok(nd_dir_open(AT_FDCWD, top, &at));
        for (unsigned i = 0; i < levels; i++) {
                int next;

                assert_int_equal(mkdirat(at, "deep", 0755), 0);
                next = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                assert_true(next >= 0);
                nd_close_fd(&at);
                at = next;
        }
        file = openat(at, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_int_equal(write(file, bytes, 1 << 20), 1 << 20);
}

static void a_tree_deeper_than_any_path_is_counted([[maybe_unused]] void **state) {
        enum { LEVELS = 4500 };
        scratch_directory d = scratch_make();
        nd_autofree char *tree = nd_format("%s/tree", d);
        struct cri_tree_usage u;

        scratch_mkdir(d, "tree");
        make_deep(tree, LEVELS);
        expect_ok(cri_usage_of_tree(AT_FDCWD, tree, 60 * ND_SECOND_US, &u));
        assert_false(u.partial);
        assert_int_equal(u.inodes, LEVELS + 2);
        assert_true(u.bytes >= 1 << 20);
        expect_ok(nd_tree_remove(AT_FDCWD, tree));
}

/* Each level has enough siblings that reading resumes in the middle of a directory. */
static void a_tree_deeper_than_there_are_descriptors_is_counted_once([[maybe_unused]] void **state) {
        enum { LEVELS = 3000, SIBLINGS = 3 };
        scratch_directory d = scratch_make();
        nd_autofree char *tree = nd_format("%s/tree", d);
        nd_autoclose int at = -EBADF;
        struct rlimit before, few;
        struct cri_tree_usage u;

        scratch_mkdir(d, "tree");
        expect_ok(nd_dir_open(AT_FDCWD, tree, &at));
        for (unsigned i = 0; i < LEVELS; i++) {
                int next;

                for (char name[] = "a"; name[0] < 'a' + SIBLINGS; name[0]++)
                        assert_int_equal(mkdirat(at, name, 0755), 0);
                next = openat(at, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                nd_close_fd(&at);
                at = next;
        }
        nd_close_fd(&at);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        few = (struct rlimit) {.rlim_cur = 600, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        expect_ok(cri_usage_of_tree(AT_FDCWD, tree, 60 * ND_SECOND_US, &u));
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_false(u.partial);
        assert_int_equal(u.inodes, LEVELS * SIBLINGS + 1);
        expect_ok(nd_tree_remove(AT_FDCWD, tree));
}

/* The container's side of a race: moves a directory in the middle of the tree elsewhere and back,
 * until killed. */
[[noreturn]] static void move_about(int middle) {
        for (;;) {
                (void) renameat(middle, "deep", middle, "elsewhere/deep");
                (void) renameat(middle, "elsewhere/deep", middle, "deep");
        }
}

static void directories_moved_meanwhile_make_the_result_partial_never_wrong([[maybe_unused]] void **state) {
        enum { ABOVE = 400, BELOW = 600, ROUNDS = 8 };
        scratch_directory d = scratch_make();
        nd_autofree char *tree = nd_format("%s/tree", d);
        size_t descriptors = resources_descriptors();
        struct rlimit before, few;
        unsigned partial = 0;
        int middle = -EBADF;
        pid_t mover;

        scratch_mkdir(d, "tree");
        make_deep(tree, ABOVE + BELOW);
        expect_ok(nd_dir_open(AT_FDCWD, tree, &middle));
        for (unsigned i = 0; i < ABOVE; i++) {
                int next = openat(middle, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                nd_close_fd(&middle);
                middle = next;
        }
        assert_int_equal(mkdirat(middle, "elsewhere", 0755), 0);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        few = (struct rlimit) {.rlim_cur = 600, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        mover = fork();
        if (mover == 0)
                move_about(middle);
        for (unsigned i = 0; i < ROUNDS; i++) {
                struct cri_tree_usage u = {};

                expect_ok(cri_usage_of_tree(AT_FDCWD, tree, 60 * ND_SECOND_US, &u));
                /* Seen at both places at most: everything below is then counted twice. */
                assert_true(u.inodes <= ABOVE + 2 * BELOW + 4);
                assert_true(u.inodes >= ABOVE + 1 || u.partial);
                partial += u.partial;
        }
        print_message("# %u of %d walks were partial\n", partial, ROUNDS);
        assert_int_equal(kill(mover, SIGKILL), 0);
        assert_int_equal(waitpid(mover, nullptr, 0), mover);
        nd_close_fd(&middle);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(resources_descriptors(), descriptors);
        expect_ok(nd_tree_remove(AT_FDCWD, tree));
}

static void a_tree_that_takes_too_long_is_partial([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        struct cri_tree_usage u = {};

        for (int i = 0; i < 600; i++) {
                nd_autofree char *name = nd_format("%d", i);

                scratch_write(d, name, "x", 1);
        }
        expect_ok(cri_usage_of_tree(AT_FDCWD, d, 0, &u));
        assert_true(u.partial);
        assert_true(u.at > 0 && u.inodes > 100 && u.inodes < 600);
        assert_true(u.bytes > 0);
        expect_ok(cri_usage_of_tree(AT_FDCWD, d, 60 * ND_SECOND_US, &u));
        assert_false(u.partial);
        assert_int_equal(u.inodes, 601);
}

static void a_cgroup_that_is_gone_is_not_found([[maybe_unused]] void **state) {
        struct cri_usage u;
        struct cri_process_usage p;

        expect_error(cri_usage_of_cgroup("/no/such/cgroup", USAGE_ALL, &u), ND_NOT_FOUND, "/no/such/cgroup");
        expect_error(cri_usage_of_processes("/no/such/cgroup", &p), ND_NOT_FOUND, "/no/such/cgroup");
}

static void the_usage_of_our_own_cgroup_includes_us([[maybe_unused]] void **state) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        struct cri_process_usage p;
        struct cri_usage u;

        expect_ok(nd_cgroup_discover(&cgroup));
        if (cgroup.layout != ND_CGROUP_UNIFIED || !cgroup.writable)
                skip_because("no writable cgroup v2");
        expect_ok(cri_usage_of_cgroup(cgroup.own, USAGE_ALL, &u));
        assert_true(u.at > 0);
        assert_true(u.has_cpu); /* also without a controller */
        assert_true(u.cpu >= u.cpu_user);
        expect_ok(cri_usage_of_processes(cgroup.own, &p));
        assert_true(p.processes >= 1 && p.descriptors >= 3);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pressure_is_parsed),
                cmocka_unit_test(malformed_pressure_is_rejected),
                cmocka_unit_test(network_counters_are_parsed_per_interface),
                cmocka_unit_test(an_incomplete_line_of_counters_is_ignored),
                cmocka_unit_test(a_tree_is_counted_with_each_file_once),
                cmocka_unit_test(a_tree_deeper_than_any_path_is_counted),
                cmocka_unit_test(a_tree_deeper_than_there_are_descriptors_is_counted_once),
                cmocka_unit_test(directories_moved_meanwhile_make_the_result_partial_never_wrong),
                cmocka_unit_test(a_tree_that_takes_too_long_is_partial),
                cmocka_unit_test(a_cgroup_that_is_gone_is_not_found),
                cmocka_unit_test(the_usage_of_our_own_cgroup_includes_us),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
