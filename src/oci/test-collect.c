/* SPDX-License-Identifier: Apache-2.0 */
/* test-collect.c - what a collection removes from the store, and what stays */
#include "oci/store.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"

static const struct offer_plan apple = {
        .number = 1, .shared = 2, .own = 2, .index = true, .names = {"apple:1", "docker.io/library/apple:latest"}};
static const struct offer_plan pear = {.number = 2, .shared = 2, .own = 1, .names = {"pear:1"}};

static void removed_images_leave_only_shared_layers([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_oci_store_usage usage;
        {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                struct nd_digest id = offer_id(&apple);

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
                assert_int_equal(scratch_entries(root, "layers"), 5);
                assert_int_equal(offers_collect(store, nullptr, nullptr), 0);
                expect_ok(nd_oci_store_remove(store, &id));
                assert_int_equal(scratch_entries(root, "layers"), 5);
                assert_int_equal(offers_collect(store, nullptr, nullptr), 2);
                assert_int_equal(scratch_entries(root, "layers"), 3);
                assert_int_equal(scratch_entries(root, "blobs/sha256"), 2);
                offers_empty_trash(store);
                usage = nd_oci_store_usage(store);
                assert_true(usage.bytes > 3 * 1000 && usage.bytes < 4 * 1000 + 2000);
        }
        assert_int_equal(offers_check(root), 1);
}

struct user {
        struct nd_digest chain;
        unsigned asked;
};

static bool is_used(const struct nd_digest *digest, void *userdata) {
        struct user *user = userdata;

        user->asked++;
        return nd_digest_equal(digest, &user->chain);
}

static void a_used_layer_stays_with_all_layers_below([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_digest chains[4], id = offer_id(&apple);
        struct user user = {};

        for (int restart = 0; restart < 2; restart++) {
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;

                expect_ok(nd_oci_store_open(root, &store));
                if (restart == 0) {
                        expect_ok(offer_commit(store, &apple));
                        nd_image_chains(nd_oci_store_get(store, &id), chains);
                        user.chain = chains[2];
                        expect_ok(nd_oci_store_remove(store, &id));
                }
                assert_int_equal(offers_collect(store, is_used, &user), restart == 0 ? 1 : 0);
                assert_true(user.asked > 0);
                assert_int_equal(scratch_entries(root, "layers"), 3);
        }
        assert_int_equal(offers_check(root), 0); /* no container uses it any more */
        assert_int_equal(scratch_entries(root, "layers"), 0);
}

static void nothing_is_collected_during_a_pull([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_oci_store_collected collected;
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *stage = nullptr;
        nd_autoclose int fd = -EBADF;

        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(nd_oci_store_stage(store, &stage, &fd));
        expect_ok(nd_oci_store_remove(store, &id));
        expect_ok(nd_oci_store_collect(store, 0, nullptr, nullptr, &collected));
        assert_true(collected.deferred);
        assert_int_equal(scratch_entries(root, "layers"), 4);
        nd_oci_store_unstage(store, stage);
        assert_int_equal(offers_collect(store, nullptr, nullptr), 4);
}

static void garbage_younger_than_the_grace_stays([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_oci_store_collected collected;
        struct nd_digest id = offer_id(&apple);

        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(nd_oci_store_remove(store, &id));
        expect_ok(nd_oci_store_collect(store, 3600 * ND_SECOND_US, nullptr, nullptr, &collected));
        assert_int_equal(collected.layers, 0);
        assert_int_equal(offers_collect(store, nullptr, nullptr), 4);
}

static void trash_is_counted_until_it_is_removed_and_handed_out_once([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        nd_autofree char *path = nullptr, *none = nullptr, *again = nullptr;
        struct nd_digest id = offer_id(&pear);
        uint64_t before;

        expect_ok(nd_oci_store_open(root, &store));
        expect_ok(offer_commit(store, &pear));
        offers_empty_trash(store);
        expect_ok(nd_oci_store_remove(store, &id));
        assert_int_equal(offers_collect(store, nullptr, nullptr), 3);
        before = nd_oci_store_usage(store).bytes;
        assert_true(before >= 3000);
        expect_ok(nd_oci_store_trash_take(store, &path));
        assert_non_null(path);
        expect_ok(nd_oci_store_trash_take(store, &none));
        assert_null(none);
        nd_oci_store_trash_done(store, path, false);
        expect_ok(nd_oci_store_trash_take(store, &again));
        assert_string_equal(path, again);
        nd_oci_store_trash_done(store, again, true);
        assert_int_equal(nd_oci_store_usage(store).bytes, 0);
}

/* As a compromised fetcher may leave it. */
static void unexpected_partial_downloads_are_collected([[maybe_unused]] void **state) {
        struct timespec later[2] = {{.tv_sec = INT_MAX}, {.tv_sec = INT_MAX}};

        for (int trick = 0; trick < 3; trick++) {
                scratch_directory root = scratch_make();
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                nd_autofree char *partial = nd_format("%s/staging/partial", root), *future = nd_format("%s/future", partial);
                struct stat named, held;

                expect_ok(nd_oci_store_open(root, &store));
                for (int i = 0; trick == 0 && i < 5000; i++) {
                        nd_autofree char *name = nd_format("staging/partial/%d", i);

                        scratch_text(root, name, "");
                }
                if (trick == 1)
                        scratch_mkdir(root, "staging/partial/deep/deeper");
                if (trick == 2) {
                        scratch_text(root, "staging/partial/future", "half");
                        assert_int_equal(utimensat(AT_FDCWD, future, later, 0), 0);
                }
                (void) offers_collect(store, nullptr, nullptr);
                offers_empty_trash(store);
                assert_int_equal(scratch_entries(root, "staging/partial"), 0);
                assert_int_equal(fstatat(AT_FDCWD, partial, &named, 0), 0);
                assert_int_equal(fstat(nd_oci_store_partial_fd(store), &held), 0);
                assert_int_equal(named.st_ino, held.st_ino);
        }
}

static void staging_directories_of_a_dead_process_are_trash_except_partial_downloads([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        nd_autofree char *partial = nd_format("%s/staging/partial/old", root);

        scratch_mkdir(root, "staging/pull-1/unpack/layers/x/fs");
        scratch_mkdir(root, "staging/partial");
        scratch_text(root, "staging/partial/new", "half");
        scratch_text(root, "staging/partial/old", "half");
        assert_int_equal(utimensat(AT_FDCWD, partial, old, 0), 0);
        expect_ok(nd_oci_store_open(root, &store));
        offers_empty_trash(store);
        assert_int_equal(scratch_entries(root, "staging"), 1);
        assert_true(scratch_has(root, "staging/partial/old"));
        (void) offers_collect(store, nullptr, nullptr);
        assert_false(scratch_has(root, "staging/partial/old"));
        assert_true(scratch_has(root, "staging/partial/new"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(removed_images_leave_only_shared_layers),
                cmocka_unit_test(a_used_layer_stays_with_all_layers_below),
                cmocka_unit_test(nothing_is_collected_during_a_pull),
                cmocka_unit_test(garbage_younger_than_the_grace_stays),
                cmocka_unit_test(trash_is_counted_until_it_is_removed_and_handed_out_once),
                cmocka_unit_test(unexpected_partial_downloads_are_collected),
                cmocka_unit_test(staging_directories_of_a_dead_process_are_trash_except_partial_downloads),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
