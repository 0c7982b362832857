/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/mount.h>
#include <sys/stat.h>

#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/mount.h"
#include "sys/worker.h"
#include "userns/range.h"

static void ids_per_pod_is_checked_with_the_kubelet_s_texts([[maybe_unused]] void **state) {
        expect_ok(nd_userns_ids_per_pod_check(65536));
        expect_ok(nd_userns_ids_per_pod_check(3 * 65536));
        expect_ok(nd_userns_ids_per_pod_check(4294901760));
        expect_error_text(nd_userns_ids_per_pod_check(65535),
                          "invalid configuration: userNamespaces.idsPerPod must not be less than 65536");
        expect_error_text(nd_userns_ids_per_pod_check(-65536),
                          "invalid configuration: userNamespaces.idsPerPod must not be less than 65536");
        expect_error_text(nd_userns_ids_per_pod_check(65537),
                          "invalid configuration: userNamespaces.idsPerPod must be a multiple of 65536");
        expect_error_text(nd_userns_ids_per_pod_check(INT64_C(1) << 32),
                          "invalid configuration: userNamespaces.idsPerPod must not be more than 4294967295");
}

static void the_default_range_is_everything_above_the_first_block([[maybe_unused]] void **state) {
        assert_int_equal(nd_range_default(65536).first, 65536);
        assert_int_equal(nd_range_default(65536).count, 4294901760);
        assert_int_equal(nd_range_default(1 << 20).first, 1 << 20);
}

static void one_line_of_getsubids_is_parsed_as_a_range([[maybe_unused]] void **state) {
        struct nd_userns_range range = {};

        expect_ok(nd_range_parse("0: kubelet 65536 7208960\n", &range));
        assert_int_equal(range.first, 65536);
        assert_int_equal(range.count, 7208960);
        expect_ok(nd_range_parse("\n\n0:\tkubelet  1   2\n\n", &range));
        assert_int_equal(range.count, 2);
}

static void other_output_of_getsubids_is_refused_with_the_kubelet_s_texts([[maybe_unused]] void **state) {
        static const struct {
                const char *output;
                const char *error;
        } cases[] = {
                {"", "invalid line \"\""},
                {"0: kubelet 1\n", "invalid line \"0: kubelet 1\\n\""},
                {"0: kubelet 1 2 3\n", "invalid line \"0: kubelet 1 2 3\\n\""},
                {"0: kubelet 1 2\n1: kubelet 3 4\n",
                 "error parsing line \"0: kubelet 1 2\\n1: kubelet 3 4\\n\": it must contain only one line"},
                {"0: kubelet x 2\n",
                 "error parsing line \"0: kubelet x 2\\n\": strconv.ParseUint: parsing \"x\": invalid syntax"},
                {"0: kubelet 1 4294967296", "error parsing line \"0: kubelet 1 4294967296\": strconv.ParseUint: parsing "
                                            "\"4294967296\": value out of range"},
                {"0: kubelet -1 2",
                 "error parsing line \"0: kubelet -1 2\": strconv.ParseUint: parsing \"-1\": invalid syntax"},
        };
        struct nd_userns_range range = {.first = 7};

        for (size_t i = 0; i < nd_count_of(cases); i++)
                expect_error_text(nd_range_parse(cases[i].output, &range), cases[i].error);
        assert_int_equal(range.first, 7);
}

static void a_range_is_checked_with_the_kubelet_s_texts([[maybe_unused]] void **state) {
        static const struct {
                struct nd_userns_range range;
                uint32_t ids_per_pod;
                uint32_t max_pods;
                const char *error; /* nullptr = fine */
        } cases[] = {
                {{65536, 65536 * 110}, 65536, 110, nullptr},
                {{65536, 65536}, 100000, 1, "kubelet user namespace length 100000 is not a multiple of 65536"},
                {{65536, 65536}, 0, 1, "kubelet user namespace length 0 is not a multiple of 65536"},
                {{100000, 65536}, 65536, 1, "kubelet user assigned ID 100000 is not a multiple of 65536"},
                {{0, 65536}, 65536, 1, "kubelet user assigned ID 0 must be greater or equal to 65536"},
                {{65536, 65537}, 65536, 1, "kubelet user assigned IDs length 65537 is not a multiple of 65536"},
                {{65536, 65536 * 109}, 65536, 110, "kubelet user assigned IDs are not enough to support 110 pods"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                struct nd_error *error = nd_range_check(cases[i].range, cases[i].ids_per_pod, cases[i].max_pods);

                if (cases[i].error)
                        expect_error_text(error, cases[i].error);
                else
                        expect_ok(error);
        }
}

/* Prepares the host's files for a test in a private mount namespace, and returns the node's
 * range. */
struct node {
        char *root;
        bool getsubids;
};

static bool cover(const char *root, const char *name) {
        nd_autofree char *from = nd_format("%s/%s", root, name), *to = nd_format("/etc/%s", name);

        return mount(from, to, nullptr, MS_BIND, nullptr) == 0;
}

static struct nd_error *ask(void *argument, [[maybe_unused]] int *ret_fd) {
        struct node *node = argument;
        enum nd_range_source source;
        struct nd_userns_range range;

        nd_try(nd_mount_namespace_private());
        if (!cover(node->root, "passwd") || !cover(node->root, "subuid") || !cover(node->root, "subgid"))
                return nd_error_new(ND_DENIED, errno, "bind over files of /etc");
        (void) setenv("PATH", node->root, 1); /* so that getsubids is found or not */
        nd_try(nd_range_of_node(65536, &range, &source));
        return nd_error_new(ND_ABORTED, 0, "source %d, range %u %u", (int) source, range.first, range.count);
}

static struct nd_error *node_range(const char *passwd, const char *subuid, const char *subgid, bool getsubids) {
        scratch_directory root = scratch_make();
        struct node node = {.root = root};
        struct nd_error *error;

        scratch_text(root, "passwd", passwd);
        scratch_text(root, "subuid", subuid);
        scratch_text(root, "subgid", subgid);
        if (getsubids) {
                nd_autofree char *path = nd_format("%s/getsubids", root);

                scratch_text(root, "getsubids", "#!/bin/sh\n");
                assert_int_equal(chmod(path, 0755), 0);
        }
        error = nd_worker_run("range", ask, &node, 60 * ND_SECOND_US, nullptr);
        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                scratch_remove(&root);
                skip_because("files of /etc cannot be mounted over here");
        }
        return error;
}

#define ROOT_USER "root:x:0:0::/:/bin/sh\n"
#define KUBELET_USER ROOT_USER "kubelet:x:100:100::/:/bin/false\n"

static void without_a_user_kubelet_the_range_is_the_default([[maybe_unused]] void **state) {
        expect_error_text(node_range(ROOT_USER, "kubelet:65536:65536\n", "kubelet:65536:65536\n", true),
                          "source 0, range 65536 4294901760");
}

static void the_subordinate_ids_of_user_kubelet_are_the_range([[maybe_unused]] void **state) {
        expect_error_text(node_range(KUBELET_USER, "kubelet:131072:7208960\n", "kubelet:131072:7208960\n", true),
                          "source 1, range 131072 7208960");
}

/* Deliberate difference 2. */
static void a_user_kubelet_without_getsubids_is_not_fatal([[maybe_unused]] void **state) {
        expect_error_text(node_range(KUBELET_USER, "", "", false), "source 2, range 65536 4294901760");
}

static void a_user_kubelet_without_ranges_is_an_error_if_getsubids_is_installed([[maybe_unused]] void **state) {
        expect_error(node_range(KUBELET_USER, "", "", true), ND_NOT_FOUND,
                     "error retrieving additional uids for user \"kubelet\": ");
        expect_error(node_range(KUBELET_USER, "kubelet:65536:65536\n", "", true), ND_NOT_FOUND,
                     "error retrieving additional gids for user \"kubelet\": ");
}

static void different_ranges_for_users_and_groups_are_an_error([[maybe_unused]] void **state) {
        expect_error_text(node_range(KUBELET_USER, "kubelet:65536:65536\n", "kubelet:131072:65536\n", true),
                          "mismatched subuids and subgids for user \"kubelet\"");
}

static void several_ranges_are_an_error([[maybe_unused]] void **state) {
        static const char two[] = "kubelet:65536:65536\nkubelet:1048576:65536\n";

        expect_error(node_range(KUBELET_USER, two, two, true), ND_INVALID, "it must contain only one line");
}

static void extents_are_the_intersections_of_both_maps([[maybe_unused]] void **state) {
        struct nd_userns_map uid_lines[] = {{65536, 500000, 131072}, {0, 1000, 1}},
                             gid_lines[] = {{0, 1000, 1}, {131072, 0, 1 << 20}};
        struct nd_userns_maps uids = {.items = uid_lines, .count = 2}, gids = {.items = gid_lines, .count = 2}, none = {};
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {}, empty = {};

        nd_userns_extents_of_maps(&uids, &gids, &extents);
        assert_int_equal(extents.count, 2);
        assert_int_equal(extents.items[0].first, 0);
        assert_int_equal(extents.items[0].count, 1);
        assert_int_equal(extents.items[1].first, 131072);
        assert_int_equal(extents.items[1].count, 65536);
        nd_userns_extents_of_maps(&uids, &none, &empty);
        assert_int_equal(empty.count, 0);
}

static void adjacent_extents_are_not_merged_since_no_map_may_span_them([[maybe_unused]] void **state) {
        struct nd_userns_map lines[] = {{0, 100000, 65536}, {65536, 900000, 65536}};
        struct nd_userns_maps maps = {.items = lines, .count = 2};
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};

        nd_userns_extents_of_maps(&maps, &maps, &extents);
        assert_int_equal(extents.count, 2);
        assert_true(nd_userns_extents_hold(&extents, 0, 65536));
        assert_true(nd_userns_extents_hold(&extents, 65536, 65536));
        assert_false(nd_userns_extents_hold(&extents, 32768, 65536));
        assert_false(nd_userns_extents_hold(&extents, 131071, 2));
}

static void our_own_extents_can_be_read([[maybe_unused]] void **state) {
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};

        expect_ok(nd_userns_extents_own(&extents));
        assert_true(extents.count > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ids_per_pod_is_checked_with_the_kubelet_s_texts),
                cmocka_unit_test(the_default_range_is_everything_above_the_first_block),
                cmocka_unit_test(one_line_of_getsubids_is_parsed_as_a_range),
                cmocka_unit_test(other_output_of_getsubids_is_refused_with_the_kubelet_s_texts),
                cmocka_unit_test(a_range_is_checked_with_the_kubelet_s_texts),
                cmocka_unit_test(without_a_user_kubelet_the_range_is_the_default),
                cmocka_unit_test(the_subordinate_ids_of_user_kubelet_are_the_range),
                cmocka_unit_test(a_user_kubelet_without_getsubids_is_not_fatal),
                cmocka_unit_test(a_user_kubelet_without_ranges_is_an_error_if_getsubids_is_installed),
                cmocka_unit_test(different_ranges_for_users_and_groups_are_an_error),
                cmocka_unit_test(several_ranges_are_an_error),
                cmocka_unit_test(extents_are_the_intersections_of_both_maps),
                cmocka_unit_test(adjacent_extents_are_not_merged_since_no_map_may_span_them),
                cmocka_unit_test(our_own_extents_can_be_read),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
