/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "oci/layer.h"
#include "sys/calls.h"
#include "sys/worker.h"

static const struct offer_plan apple = {
        .number = 1, .shared = 2, .own = 2, .index = true, .names = {"apple:1", "docker.io/library/apple:latest"}};
static const struct offer_plan pear = {.number = 2, .shared = 2, .own = 1, .names = {"pear:1"}};
static const struct offer_plan other_apple = {.number = 3, .shared = 2, .own = 1, .names = {"apple:1", "apple:2"}};

static const struct nd_image *find(const struct nd_image_store *store, const char *text) {
        const struct nd_image *image;

        expect_ok(nd_image_store_find(store, text, &image));
        return image;
}

static const struct nd_image *image_of(const struct nd_image_store *store, const struct offer_plan *plan) {
        struct nd_digest id = offer_id(plan);

        return nd_image_store_get(store, &id);
}

static size_t collect(struct nd_image_store *store, nd_image_store_used used, void *userdata) {
        struct nd_image_store_collected collected;

        expect_ok(nd_image_store_collect(store, 0, used, userdata, &collected));
        assert_false(collected.deferred);
        return collected.layers;
}

static void an_image_is_found_by_all_its_names_and_ids([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        char text[ND_DIGEST_TEXT], part[ND_DIGEST_TEXT];
        const struct nd_image *image;

        expect_ok(nd_image_store_open(root, &store));
        assert_null(find(store, "apple:1"));
        expect_ok(offer_commit(store, &apple));
        expect_ok(offer_commit(store, &pear));
        image = image_of(store, &apple);
        assert_non_null(image);
        assert_int_equal(image->layer_count, 4);
        assert_string_equal(image->user, "1001");
        assert_true(image->size > 4000);

        assert_ptr_equal(find(store, "apple:1"), image);
        assert_ptr_equal(find(store, "apple"), image);
        assert_ptr_equal(find(store, "docker.io/library/apple:1"), image);
        assert_ptr_equal(find(store, "index.docker.io/apple:1"), image);
        (void) nd_digest_text(&image->id, text);
        assert_ptr_equal(find(store, text), image);
        assert_ptr_equal(find(store, text + strlen("sha256:")), image);
        (void) snprintf(part, sizeof part, "%.19s", text);
        assert_ptr_equal(find(store, part), image);
        assert_ptr_equal(find(store, part + strlen("sha256:")), image);
        assert_null(find(store, "apple:3"));
        assert_null(find(store, "example.com/apple:1"));
        assert_null(find(store, "../../etc/passwd"));
        assert_null(find(store, ""));
        assert_null(find(store, "0000000000"));
}

static void an_image_is_there_after_a_restart([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_image_store_usage before, after;
        const struct nd_image *image;

        for (int i = 0; i < 2; i++) {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                if (i == 0) {
                        struct nd_digest id = offer_id(&apple);

                        expect_ok(offer_commit(store, &apple));
                        expect_ok(offer_commit(store, &pear));
                        expect_ok(nd_image_store_pin(store, &id, true));
                        offers_empty_trash(store);
                        before = nd_image_store_usage(store);
                        continue;
                }
                after = nd_image_store_usage(store);
                assert_int_equal(before.bytes, after.bytes);
                assert_int_equal(before.inodes, after.inodes);
                image = find(store, "apple:1");
                assert_non_null(image);
                assert_true(image->pinned);
                assert_int_equal(image->tags.count, 2);
                assert_string_equal(image->user, "1001");
                assert_int_equal(image->pulled_at, 1);
                assert_false(find(store, "pear:1")->pinned);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_tag_moves_to_the_image_that_has_it_now([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &other_apple));
                assert_ptr_equal(find(store, "apple:1"), image_of(store, &other_apple));
                assert_ptr_equal(find(store, "apple:latest"), image_of(store, &apple));
                assert_int_equal(image_of(store, &apple)->tags.count, 1);
        }
        assert_int_equal(offers_check(root), 2);
}

static void an_image_that_lost_its_last_tag_to_another_stays([[maybe_unused]] void **state) {
        static const struct offer_plan thief = {.number = 9, .own = 1, .names = {"pear:1"}};
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &pear));
                expect_ok(offer_commit(store, &thief));
                assert_non_null(image_of(store, &pear));
                assert_int_equal(image_of(store, &pear)->tags.count, 0);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_name_that_moved_does_not_come_back_when_its_new_owner_goes([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();

        for (int restart = 0; restart < 2; restart++) {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                struct nd_digest id = offer_id(&other_apple);

                expect_ok(nd_image_store_open(root, &store));
                if (restart == 0) {
                        expect_ok(offer_commit(store, &apple));
                        expect_ok(offer_commit(store, &other_apple));
                        expect_ok(nd_image_store_remove(store, &id));
                }
                assert_null(find(store, "apple:1"));
                assert_non_null(find(store, "apple:latest"));
        }
}

static void the_same_image_under_another_name_is_one_image([[maybe_unused]] void **state) {
        struct offer_plan again = apple;
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

        again.names[0] = "registry.example:5000/team/apple:7";
        again.names[1] = nullptr;
        expect_ok(nd_image_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(offer_commit(store, &again));
        assert_ptr_equal(find(store, "registry.example:5000/team/apple:7"), find(store, "apple:1"));
        assert_int_equal(find(store, "apple:1")->tags.count, 3);
}

static void the_last_name_takes_the_image_with_it([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                struct nd_digest id = offer_id(&pear);

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &pear));
                expect_ok(nd_image_store_tag(store, &id, "pear:2"));
                expect_error(nd_image_store_tag(store, &id, "Pear:2"), ND_INVALID, "lower case");
                expect_ok(nd_image_store_untag(store, "pear:1"));
                assert_null(find(store, "pear:1"));
                assert_non_null(find(store, "pear:2"));
                expect_error(nd_image_store_untag(store, "pear:1"), ND_NOT_FOUND, "pear:1");
                expect_ok(nd_image_store_untag(store, "docker.io/library/pear:2"));
                assert_null(nd_image_store_get(store, &id));
                expect_error(nd_image_store_remove(store, &id), ND_NOT_FOUND, "sha256:");
        }
        assert_int_equal(offers_check(root), 0);
}

static void removed_images_leave_only_what_others_share([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_image_store_usage usage;
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                struct nd_digest id = offer_id(&apple);

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
                assert_int_equal(scratch_entries(root, "layers"), 5);
                assert_int_equal(collect(store, nullptr, nullptr), 0);
                expect_ok(nd_image_store_remove(store, &id));
                assert_int_equal(scratch_entries(root, "layers"), 5);
                assert_int_equal(collect(store, nullptr, nullptr), 2);
                assert_int_equal(scratch_entries(root, "layers"), 3);
                assert_int_equal(scratch_entries(root, "blobs/sha256"), 2);
                offers_empty_trash(store);
                usage = nd_image_store_usage(store);
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

static void what_a_container_uses_stays_with_all_that_lies_below([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_digest chains[4], id = offer_id(&apple);
        struct user user = {};

        for (int restart = 0; restart < 2; restart++) {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                if (restart == 0) {
                        expect_ok(offer_commit(store, &apple));
                        nd_image_chains(image_of(store, &apple), chains);
                        user.chain = chains[2];
                        expect_ok(nd_image_store_remove(store, &id));
                }
                assert_int_equal(collect(store, is_used, &user), restart == 0 ? 1 : 0);
                assert_true(user.asked > 0);
                assert_int_equal(scratch_entries(root, "layers"), 3);
        }
        assert_int_equal(offers_check(root), 0); /* nobody uses it any more */
        assert_int_equal(scratch_entries(root, "layers"), 0);
}

static void nothing_is_collected_while_a_helper_may_count_on_it([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct nd_image_store_collected collected;
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *stage = nullptr;
        nd_autoclose int fd = -EBADF;

        expect_ok(nd_image_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(nd_image_store_stage(store, &stage, &fd));
        expect_ok(nd_image_store_remove(store, &id));
        expect_ok(nd_image_store_collect(store, 0, nullptr, nullptr, &collected));
        assert_true(collected.deferred);
        assert_int_equal(scratch_entries(root, "layers"), 4);
        nd_image_store_unstage(store, stage);
        assert_int_equal(collect(store, nullptr, nullptr), 4);
}

static void garbage_younger_than_the_grace_stays([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct nd_image_store_collected collected;
        struct nd_digest id = offer_id(&apple);

        expect_ok(nd_image_store_open(root, &store));
        expect_ok(offer_commit(store, &apple));
        expect_ok(nd_image_store_remove(store, &id));
        expect_ok(nd_image_store_collect(store, 3600 * UINT64_C(1000000), nullptr, nullptr, &collected));
        assert_int_equal(collected.layers, 0);
        assert_int_equal(collect(store, nullptr, nullptr), 4);
}

static void trash_is_counted_until_it_is_gone_and_given_to_one_at_a_time([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        nd_autofree char *path = nullptr, *none = nullptr, *again = nullptr;
        struct nd_digest id = offer_id(&pear);
        uint64_t before;

        expect_ok(nd_image_store_open(root, &store));
        expect_ok(offer_commit(store, &pear));
        offers_empty_trash(store);
        expect_ok(nd_image_store_remove(store, &id));
        assert_int_equal(collect(store, nullptr, nullptr), 3);
        before = nd_image_store_usage(store).bytes;
        assert_true(before >= 3000);
        expect_ok(nd_image_store_trash_take(store, &path));
        assert_non_null(path);
        expect_ok(nd_image_store_trash_take(store, &none));
        assert_null(none);
        nd_image_store_trash_done(store, path, false);
        expect_ok(nd_image_store_trash_take(store, &again));
        assert_string_equal(path, again);
        nd_image_store_trash_done(store, again, true);
        assert_int_equal(nd_image_store_usage(store).bytes, 0);
}

/* As a fetcher that was taken over may leave it. */
static void partial_downloads_that_no_pull_leaves_are_collected([[maybe_unused]] void **state) {
        struct timespec later[2] = {{.tv_sec = INT_MAX}, {.tv_sec = INT_MAX}};

        for (int trick = 0; trick < 3; trick++) {
                scratch_directory root = scratch_make();
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                nd_autofree char *partial = nd_format("%s/staging/partial", root), *future = nd_format("%s/future", partial);
                struct stat named, held;

                expect_ok(nd_image_store_open(root, &store));
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
                (void) collect(store, nullptr, nullptr);
                offers_empty_trash(store);
                assert_int_equal(scratch_entries(root, "staging/partial"), 0);
                assert_int_equal(fstatat(AT_FDCWD, partial, &named, 0), 0);
                assert_int_equal(fstat(nd_image_store_partial_fd(store), &held), 0);
                assert_int_equal(named.st_ino, held.st_ino);
        }
}

static void what_a_dead_process_staged_is_trash_but_partial_downloads_stay([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
        nd_autofree char *partial = nd_format("%s/staging/partial/old", root);

        scratch_mkdir(root, "staging/pull-1/unpack/layers/x/fs");
        scratch_mkdir(root, "staging/partial");
        scratch_text(root, "staging/partial/new", "half");
        scratch_text(root, "staging/partial/old", "half");
        assert_int_equal(utimensat(AT_FDCWD, partial, old, 0), 0);
        expect_ok(nd_image_store_open(root, &store));
        offers_empty_trash(store);
        assert_int_equal(scratch_entries(root, "staging"), 1);
        assert_true(scratch_has(root, "staging/partial/old"));
        (void) collect(store, nullptr, nullptr);
        assert_false(scratch_has(root, "staging/partial/old"));
        assert_true(scratch_has(root, "staging/partial/new"));
}

static struct nd_error *open_second(void *root, [[maybe_unused]] int *ret_fd) {
        struct nd_image_store *second = nullptr;

        return nd_image_store_open(root, &second);
}

static struct nd_error *lives_on(void *argument, [[maybe_unused]] int *ret_fd) {
        (void) argument;
        (void) usleep(300 * 1000);
        return nullptr;
}

static void on_lived([[maybe_unused]] struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        *(bool *) userdata = true;
}

/* A copy of the process that has the store does not have it. */
static void a_child_keeps_nobody_out([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_image_store *store = nullptr;
        struct nd_worker *worker;
        bool over = false;
        sd_event *loop;

        assert_true(sd_event_new(&loop) >= 0);
        expect_ok(nd_image_store_open(root, &store));
        expect_ok(nd_worker_start(loop, "live on", lives_on, nullptr, 60 * ND_SECOND_US, on_lived, &over, &worker));
        nd_image_store_free(store);
        expect_ok(nd_image_store_open(root, &store));
        while (!over)
                assert_true(sd_event_run(loop, ND_SECOND_US) >= 0);
        nd_image_store_free(store);
        sd_event_unref(loop);
}

static void only_one_process_has_a_store([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct stat st;

        assert_int_equal(chmod(root, 0755), 0);
        expect_ok(nd_image_store_open(root, &store));
        expect_error(nd_worker_run("open", open_second, root, 60 * ND_SECOND_US, nullptr), ND_PRECONDITION,
                     "another process uses");
        assert_int_equal(stat(root, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
}

/* A commit of an offer that somebody has tampered with. */
static struct nd_error *commit_tampered(const char *root, struct nd_image_store *store,
                                        void (*tamper)(const char *stage, struct offer *offer)) {
        nd_cleanup(offer_done) struct offer offer = {};
        nd_autofree char *id = nullptr, *directory = nullptr;
        nd_autoclose int fd = -EBADF;
        const struct nd_image *image;
        struct nd_error *error;

        expect_ok(nd_image_store_stage(store, &id, &fd));
        offer_make(store, fd, &apple, &offer);
        offer.offer.names = &offer.names;
        offer.offer.unpacked = &offer.unpacked;
        directory = nd_format("%s/staging/%s", root, id);
        tamper(directory, &offer);
        error = nd_image_store_commit(store, id, &offer.offer, &image);
        nd_image_store_unstage(store, id);
        return error;
}

static char *blob_path(const struct nd_digest *digest) {
        char hex[ND_DIGEST_HEX];

        return nd_format("blobs/%s", nd_digest_hex(digest, hex));
}

static void change_config(const char *stage, struct offer *offer) {
        nd_autofree char *path = blob_path(&offer->offer.config);

        scratch_text(stage, path, "{\"rootfs\":{\"diff_ids\":[]}}");
}
static void change_manifest(const char *stage, struct offer *offer) {
        nd_autofree char *path = blob_path(&offer->offer.manifest);

        scratch_text(stage, path, "{}");
}
static void link_config(const char *stage, struct offer *offer) {
        nd_autofree char *path = blob_path(&offer->offer.config), *whole = nd_format("%s/%s", stage, path);

        assert_int_equal(unlink(whole), 0);
        assert_int_equal(symlink("/etc/passwd", whole), 0);
}
static void lose_config(const char *stage, struct offer *offer) {
        nd_autofree char *path = blob_path(&offer->offer.config), *whole = nd_format("%s/%s", stage, path);

        assert_int_equal(unlink(whole), 0);
}
static void claim_another_config(const char *stage, struct offer *offer) {
        nd_autofree char *path = nullptr;

        offer->offer.config = nd_digest_of(ND_HASH_SHA256, "{}", 2);
        path = blob_path(&offer->offer.config);
        scratch_text(stage, path, "{}");
}
static void claim_another_index(const char *stage, struct offer *offer) {
        static const char text[] = "{\"manifests\":[]}";
        nd_autofree char *path = nullptr;

        offer->offer.index = nd_digest_of(ND_HASH_SHA256, text, strlen(text));
        path = blob_path(&offer->offer.index);
        scratch_text(stage, path, text);
}
static void index_as_manifest([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->offer.manifest = offer->offer.index;
}
static void manifest_as_index([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->offer.index = offer->offer.manifest;
}
static void claim_a_bad_name([[maybe_unused]] const char *stage, struct offer *offer) {
        nd_strings_add(&offer->names, "example.com/../evil");
}
static void claim_a_foreign_digest([[maybe_unused]] const char *stage, struct offer *offer) {
        nd_strings_add(&offer->names, "apple@sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static char *first_layer(struct offer *offer) {
        struct nd_digest shared = nd_digest_of(ND_HASH_SHA256, "shared 0", strlen("shared 0"));
        char hex[ND_DIGEST_HEX];

        (void) offer;
        return nd_format("unpack/layers/%s", nd_digest_hex(&shared, hex));
}
static void lie_about_a_layer(const char *stage, struct offer *offer) {
        nd_autofree char *path = first_layer(offer), *file = nd_format("%s/" ND_LAYER_FILE, path);
        struct nd_layer layer = {.diff_id = nd_digest_of(ND_HASH_SHA256, "x", 1)};
        nd_autofree char *text = nd_layer_format(&layer);

        scratch_text(stage, file, text);
}
static void lose_a_layer(const char *stage, struct offer *offer) {
        nd_autofree char *path = first_layer(offer);
        char *whole = nd_format("%s/%s", stage, path);

        scratch_remove(&whole);
}
static void link_a_tree(const char *stage, struct offer *offer) {
        nd_autofree char *path = first_layer(offer), *link = nd_format("%s/%s/fs", stage, path);
        char *tree = nd_strdup(link);

        scratch_remove(&tree);
        assert_int_equal(symlink("/", link), 0);
}

/* The directory itself as a link to one that is as it should be: a writer of that place would change the layer later. */
static void link_a_layer(const char *stage, struct offer *offer) {
        nd_autofree char *path = first_layer(offer), *link = nd_format("%s/%s", stage, path),
                         *elsewhere = nd_format("%s/elsewhere", stage);

        assert_int_equal(rename(link, elsewhere), 0);
        assert_int_equal(symlink(elsewhere, link), 0);
}
/* All layers behind a link. */
static void link_the_layers(const char *stage, [[maybe_unused]] struct offer *offer) {
        nd_autofree char *link = nd_format("%s/unpack/layers", stage), *elsewhere = nd_format("%s/elsewhere", stage);

        assert_int_equal(rename(link, elsewhere), 0);
        assert_int_equal(symlink(elsewhere, link), 0);
}
/* A tree that is as it should be, of which the unpacker said nothing. */
static void plant_a_layer([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->unpacked.count = 0;
}
/* The unpacker hashed another stream than the one that the config names. */
static void unpack_something_else([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->unpacked.items[0].layer.diff_id = nd_digest_of(ND_HASH_SHA256, "x", 1);
}
static void link_the_blobs(const char *stage, [[maybe_unused]] struct offer *offer) {
        nd_autofree char *link = nd_format("%s/blobs", stage), *elsewhere = nd_format("%s/elsewhere", stage);

        assert_int_equal(rename(link, elsewhere), 0);
        assert_int_equal(symlink(elsewhere, link), 0);
}

static void an_offer_that_lies_is_refused_and_changes_nothing([[maybe_unused]] void **state) {
        static const struct {
                void (*tamper)(const char *stage, struct offer *offer);
                enum nd_code code;
                const char *words;
        } cases[] = {
                {change_config, ND_DATA_LOSS, "config: contents with digest"},
                {change_manifest, ND_DATA_LOSS, "manifest: contents with digest"},
                {link_config, ND_INTERNAL, "config"},
                {lose_config, ND_NOT_FOUND, "config"},
                {claim_another_config, ND_INVALID, "another config"},
                {claim_another_index, ND_INVALID, "does not name the manifest"},
                {index_as_manifest, ND_INVALID, "index was offered as manifest"},
                {manifest_as_index, ND_INVALID, "manifest was offered as index"},
                {claim_a_bad_name, ND_INVALID, "invalid image reference"},
                {claim_a_foreign_digest, ND_INVALID, "is not what"},
                {lie_about_a_layer, ND_INVALID, "describes another layer"},
                {lose_a_layer, ND_NOT_FOUND, "layer 0"},
                {link_a_tree, ND_INVALID, "fs"},
                {link_a_layer, ND_INVALID, "layer 0"},
                {link_the_layers, ND_INVALID, "layer 0"},
                {link_the_blobs, ND_INVALID, "blobs"},
                {plant_a_layer, ND_INVALID, "the unpacker did not make the layer"},
                {unpack_something_else, ND_INVALID, "describes another layer"},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                scratch_directory root = scratch_make();
                {
                        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                        struct nd_error *error;

                        expect_ok(nd_image_store_open(root, &store));
                        error = commit_tampered(root, store, cases[i].tamper);
                        if (cases[i].code == ND_INTERNAL && error) /* whatever O_NOFOLLOW's errno is taken for */
                                error = nd_error_recode(error, ND_INTERNAL);
                        expect_error(error, cases[i].code, cases[i].words);
                        assert_int_equal(scratch_entries(root, "images"), 0);
                        assert_int_equal(scratch_entries(root, "layers"), 0);
                        assert_int_equal(scratch_entries(root, "blobs/sha256"), 0);
                }
                assert_int_equal(offers_check(root), 0);
        }
}

static void a_repository_digest_is_a_name_too([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
                nd_cleanup(offer_done) struct offer offer = {};
                nd_autofree char *id = nullptr, *name = nullptr;
                nd_autoclose int fd = -EBADF;
                const struct nd_image *image;
                char text[ND_DIGEST_TEXT];

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(nd_image_store_stage(store, &id, &fd));
                offer_make(store, fd, &apple, &offer);
                name = nd_format("apple@%s", nd_digest_text(&offer.offer.index, text));
                nd_strings_add(&offer.names, name);
                offer.offer.names = &offer.names;
                offer.offer.unpacked = &offer.unpacked;
                expect_ok(nd_image_store_commit(store, id, &offer.offer, &image));
                assert_int_equal(image->digests.count, 1);
                assert_int_equal(image->tags.count, 2);
                assert_ptr_equal(find(store, name), image);
                nd_image_store_unstage(store, id);
                expect_error(nd_image_store_commit(store, id, &offer.offer, &image), ND_PRECONDITION, "no staging directory");
        }
        assert_int_equal(offers_check(root), 1);
}

static void a_damaged_record_costs_one_image([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        char file[sizeof "images/.json" + ND_DIGEST_HEX], hex[ND_DIGEST_HEX];
        struct nd_digest id = offer_id(&apple);

        (void) snprintf(file, sizeof file, "images/%s.json", nd_digest_hex(&id, hex));
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
        }
        scratch_text(root, file, "{\"version\":1,");
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                assert_int_equal(nd_image_store_problems(store)->count, 1);
                expect_contains(nd_image_store_problems(store)->items[0], "must be pulled again");
                assert_null(find(store, "apple:1"));
                assert_non_null(find(store, "pear:1"));
        }
        assert_int_equal(offers_check(root), 1);
}

static void a_record_without_its_layer_is_removed([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        struct nd_digest chains[3];
        char *layer, hex[ND_DIGEST_HEX];
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                expect_ok(offer_commit(store, &pear));
                nd_image_chains(image_of(store, &pear), chains);
        }
        layer = nd_format("%s/layers/%s", root, nd_digest_hex(&chains[2], hex));
        scratch_remove(&layer);
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                assert_int_equal(nd_image_store_problems(store)->count, 1);
                expect_contains(nd_image_store_problems(store)->items[0], "is missing");
        }
        assert_int_equal(offers_check(root), 1);
}

static void a_newer_versions_record_is_left_alone_and_stops_collection([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct nd_image_store_collected collected;

        scratch_mkdir(root, "images");
        scratch_text(root, "images/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.json", "{\"version\":2}");
        expect_ok(nd_image_store_open(root, &store));
        assert_int_equal(nd_image_store_problems(store)->count, 1);
        expect_error(nd_image_store_collect(store, 0, nullptr, nullptr, &collected), ND_PRECONDITION, "nothing is collected");
        assert_int_equal(scratch_entries(root, "images"), 1);
}

static void a_name_in_two_records_belongs_to_the_younger([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        char file[sizeof "images/.json" + ND_DIGEST_HEX], hex[ND_DIGEST_HEX];
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *before = nullptr;

        (void) snprintf(file, sizeof file, "images/%s.json", nd_digest_hex(&id, hex));
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                expect_ok(offer_commit(store, &apple));
                before = scratch_read(root, file);
                expect_ok(offer_commit(store, &other_apple));
        }
        scratch_text(root, file, before); /* as if the process had been killed between the two writes */
        {
                nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;

                expect_ok(nd_image_store_open(root, &store));
                assert_ptr_equal(find(store, "apple:1"), image_of(store, &other_apple));
                assert_int_equal(image_of(store, &apple)->tags.count, 1);
        }
        assert_int_equal(offers_check(root), 2);
}

static void a_short_id_of_several_images_is_ambiguous([[maybe_unused]] void **state) {
        enum { IMAGES = 700 }; /* of 65,536 beginnings: two agree, as birthdays do */
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct offer_plan plan = {}, pair[2] = {};
        static unsigned char seen[1 << 16];
        const struct nd_image *image;
        char part[5] = {}, hex[ND_DIGEST_HEX];

        for (plan.number = 1; plan.number < IMAGES * 10 && pair[0].number == 0; plan.number++) {
                struct nd_digest id = offer_id(&plan);
                unsigned first = (unsigned) id.bytes[0] << 8 | id.bytes[1];

                if (seen[first]++ == 0)
                        continue;
                pair[1] = plan;
                (void) strncpy(part, nd_digest_hex(&id, hex), 4);
                for (pair[0].number = 1;; pair[0].number++) {
                        struct nd_digest other = offer_id(&pair[0]);

                        if (other.bytes[0] == id.bytes[0] && other.bytes[1] == id.bytes[1])
                                break;
                }
        }
        assert_int_not_equal(pair[0].number, 0);
        expect_ok(nd_image_store_open(root, &store));
        expect_ok(offer_commit(store, &pair[0]));
        assert_non_null(find(store, part));
        expect_ok(offer_commit(store, &pair[1]));
        expect_error(nd_image_store_find(store, part, &image), ND_INVALID, "several images");
}

/* What a power cut may undo is only what was not synced: so the order of syncs and renames is looked at. An event is a letter for
 * what was done and the directory's last two components. */
static struct nd_text events;

static void note(char what, int fd) {
        char link[64], path[PATH_MAX] = {};
        const char *tail;

        (void) snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        assert_true(readlink(link, path, sizeof path - 1) > 0);
        tail = strrchr(path, '/');
        if (nd_has_prefix(tail, "/sha"))
                tail = "/blobs";
        nd_text_addf(&events, "%c%s ", what, tail);
}
static int noting_fsync(int fd) {
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        if (S_ISDIR(st.st_mode))
                note('s', fd);
        return nd_calls_real.fsync(fd);
}
static int noting_renameat(int old_fd, const char *old_path, int new_fd, const char *new_path) {
        note('r', new_fd);
        return nd_calls_real.renameat(old_fd, old_path, new_fd, new_path);
}

/* The last time that something happened; it must have. */
static const char *last(const char *event) {
        const char *found = nullptr;

        for (const char *at = nd_text_get(&events); (at = strstr(at, event)); at++)
                found = at;
        if (!found)
                fail_msg("'%s' is not among: %s", event, nd_text_get(&events));
        return found;
}

static void what_a_record_names_is_on_disk_before_it_and_trash_before_it_is_emptied([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_image_store_done) struct nd_image_store *store = nullptr;
        struct nd_calls table = nd_calls_real;
        struct nd_digest id = offer_id(&apple);
        nd_autofree char *path = nullptr, *staged = nullptr;

        table.fsync = noting_fsync;
        table.renameat = noting_renameat;
        expect_ok(nd_image_store_open(root, &store));
        events = ND_TEXT(1 << 16);
        nd_sys = &table;
        expect_ok(offer_commit(store, &apple));
        assert_true(last("r/layers") < last("s/layers"));
        assert_true(last("r/blobs") < last("s/blobs"));
        assert_true(last("s/layers") < last("r/images"));
        assert_true(last("s/blobs") < last("r/images"));
        assert_true(last("r/images") < last("s/images"));
        nd_text_done(&events);

        events = ND_TEXT(1 << 16);
        expect_ok(nd_image_store_remove(store, &id));
        (void) last("s/images");
        assert_int_equal(collect(store, nullptr, nullptr), 4);
        expect_ok(nd_image_store_trash_take(store, &staged));
        expect_ok(nd_image_store_trash_take(store, &path));
        nd_sys = &nd_calls_real;
        assert_non_null(path);
        assert_true(last("r/trash-") < last("s/layers"));
        nd_text_done(&events);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_image_is_found_by_all_its_names_and_ids),
                cmocka_unit_test(an_image_is_there_after_a_restart),
                cmocka_unit_test(a_tag_moves_to_the_image_that_has_it_now),
                cmocka_unit_test(an_image_that_lost_its_last_tag_to_another_stays),
                cmocka_unit_test(a_name_that_moved_does_not_come_back_when_its_new_owner_goes),
                cmocka_unit_test(the_same_image_under_another_name_is_one_image),
                cmocka_unit_test(the_last_name_takes_the_image_with_it),
                cmocka_unit_test(removed_images_leave_only_what_others_share),
                cmocka_unit_test(what_a_container_uses_stays_with_all_that_lies_below),
                cmocka_unit_test(nothing_is_collected_while_a_helper_may_count_on_it),
                cmocka_unit_test(garbage_younger_than_the_grace_stays),
                cmocka_unit_test(trash_is_counted_until_it_is_gone_and_given_to_one_at_a_time),
                cmocka_unit_test(partial_downloads_that_no_pull_leaves_are_collected),
                cmocka_unit_test(what_a_dead_process_staged_is_trash_but_partial_downloads_stay),
                cmocka_unit_test(only_one_process_has_a_store),
                cmocka_unit_test(a_child_keeps_nobody_out),
                cmocka_unit_test(an_offer_that_lies_is_refused_and_changes_nothing),
                cmocka_unit_test(a_repository_digest_is_a_name_too),
                cmocka_unit_test(a_damaged_record_costs_one_image),
                cmocka_unit_test(a_record_without_its_layer_is_removed),
                cmocka_unit_test(a_newer_versions_record_is_left_alone_and_stops_collection),
                cmocka_unit_test(a_name_in_two_records_belongs_to_the_younger),
                cmocka_unit_test(what_a_record_names_is_on_disk_before_it_and_trash_before_it_is_emptied),
                cmocka_unit_test(a_short_id_of_several_images_is_ambiguous),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
