/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <stdio.h>
#include <sys/mount.h>

#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/mount.h"
#include "sys/worker.h"
#include "userns/subid.h"

static void ranges_print_as_getsubids_prints_them([[maybe_unused]] void **state) {
        struct nd_subid items[] = {{.first = 65536, .count = 65536}, {.first = 4294901760, .count = 4294967296}};
        struct nd_subid_list none = {}, two = {.items = items, .count = 2};

        expect_text(nd_subid_list_text("kubelet", &two), "0: kubelet 65536 65536\n1: kubelet 4294901760 4294967296\n");
        expect_text(nd_subid_list_text("kubelet", &none), "");
}

static void a_user_without_ranges_is_an_error_not_an_empty_list([[maybe_unused]] void **state) {
        struct nd_subid_list ranges = {};

        expect_error(nd_subid_list_of("no-such-user-here", ND_SUBUID, &ranges), ND_NOT_FOUND,
                     "no subordinate user IDs of user 'no-such-user-here'");
        expect_error(nd_subid_list_of("no-such-user-here", ND_SUBGID, &ranges), ND_NOT_FOUND, "no subordinate group IDs");
        assert_null(ranges.items);
}

/* Mounts our files over /etc/subuid and /etc/subgid, in our own mount namespace, and queries
 * libsubid. */
static struct nd_error *ask(void *directory, [[maybe_unused]] int *ret_fd) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list uids = {}, gids = {};
        nd_autofree char *subuid = nd_format("%s/subuid", (char *) directory),
                         *subgid = nd_format("%s/subgid", (char *) directory), *uid_text = nullptr, *gid_text = nullptr;

        nd_try(nd_mount_namespace_private());
        if (mount(subuid, "/etc/subuid", nullptr, MS_BIND, nullptr) < 0 ||
            mount(subgid, "/etc/subgid", nullptr, MS_BIND, nullptr) < 0)
                return nd_error_new(ND_DENIED, errno, "bind over /etc/subuid");
        nd_try(nd_subid_list_of("root", ND_SUBUID, &uids));
        nd_try(nd_subid_list_of("root", ND_SUBGID, &gids));
        uid_text = nd_subid_list_text("root", &uids);
        gid_text = nd_subid_list_text("root", &gids);
        return nd_error_new(ND_ABORTED, 0, "%s%s", uid_text, gid_text);
}

static void libsubid_reads_the_files_for_both_kinds([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_error *error;

        scratch_text(root, "subuid", "other:1:2\nroot:65536:131072\nroot:1000000:65536\n");
        scratch_text(root, "subgid", "root:200000:65536\n");
        error = nd_worker_run("subids", ask, root, 60 * ND_SECOND_US, nullptr);
        if (nd_error_code(error) == ND_DENIED) {
                nd_error_free(error);
                scratch_remove(&root);
                skip_because("there is no /etc/subuid to mount over, or no privilege to do it");
        }
        expect_error_text(error, "0: root 65536 131072\n1: root 1000000 65536\n0: root 200000 65536\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ranges_print_as_getsubids_prints_them),
                cmocka_unit_test(a_user_without_ranges_is_an_error_not_an_empty_list),
                cmocka_unit_test(libsubid_reads_the_files_for_both_kinds),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
