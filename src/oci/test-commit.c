/* SPDX-License-Identifier: Apache-2.0 */
/* test-commit.c - which offers the store accepts */
#include "oci/store.h"

#include <stdio.h>
#include <unistd.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/text.h"
#include "oci/layer.h"

static const struct offer_plan apple = {
        .number = 1, .shared = 2, .own = 2, .index = true, .names = {"apple:1", "docker.io/library/apple:latest"}};

/* Commits an offer that was tampered with. */
static struct nd_error *commit_tampered(const char *root, struct nd_oci_store *store,
                                        void (*tamper)(const char *stage, struct offer *offer)) {
        nd_cleanup(offer_done) struct offer offer = {};
        nd_autofree char *id = nullptr, *directory = nullptr;
        nd_autoclose int fd = -EBADF;
        const struct nd_image *image;
        struct nd_error *error;

        expect_ok(nd_oci_store_stage(store, &id, &fd));
        offer_make(store, fd, &apple, &offer);
        offer.offer.names = &offer.names;
        offer.offer.unpacked = &offer.unpacked;
        directory = nd_format("%s/staging/%s", root, id);
        tamper(directory, &offer);
        error = nd_oci_store_commit(store, id, &offer.offer, &image);
        nd_oci_store_unstage(store, id);
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

/* The directory itself is a link to a valid one: a writer there could change the layer later. */
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
/* A valid tree that the unpacker did not report. */
static void plant_a_layer([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->unpacked.count = 0;
}
/* The unpacker hashed another stream than the one in the config. */
static void unpack_something_else([[maybe_unused]] const char *stage, struct offer *offer) {
        offer->unpacked.items[0].layer.diff_id = nd_digest_of(ND_HASH_SHA256, "x", 1);
}
static void link_the_blobs(const char *stage, [[maybe_unused]] struct offer *offer) {
        nd_autofree char *link = nd_format("%s/blobs", stage), *elsewhere = nd_format("%s/elsewhere", stage);

        assert_int_equal(rename(link, elsewhere), 0);
        assert_int_equal(symlink(elsewhere, link), 0);
}

static void a_false_offer_is_refused_and_changes_nothing([[maybe_unused]] void **state) {
        static const struct {
                void (*tamper)(const char *stage, struct offer *offer);
                enum nd_error_code code;
                const char *words;
        } cases[] = {
                {change_config, ND_DATA_LOSS, "config: content has digest"},
                {change_manifest, ND_DATA_LOSS, "manifest: content has digest"},
                {link_config, ND_INTERNAL, "config"},
                {lose_config, ND_NOT_FOUND, "config"},
                {claim_another_config, ND_INVALID, "another config"},
                {claim_another_index, ND_INVALID, "does not name the manifest"},
                {index_as_manifest, ND_INVALID, "index was offered as manifest"},
                {manifest_as_index, ND_INVALID, "manifest was offered as index"},
                {claim_a_bad_name, ND_INVALID, "invalid image reference"},
                {claim_a_foreign_digest, ND_INVALID, "does not match the digest"},
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
                        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                        struct nd_error *error;

                        expect_ok(nd_oci_store_open(root, &store));
                        error = commit_tampered(root, store, cases[i].tamper);
                        /* Depends on O_NOFOLLOW's errno. */
                        if (cases[i].code == ND_INTERNAL && error)
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
                nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
                nd_cleanup(offer_done) struct offer offer = {};
                nd_autofree char *id = nullptr, *name = nullptr;
                nd_autoclose int fd = -EBADF;
                const struct nd_image *image, *found;
                char text[ND_DIGEST_TEXT];

                expect_ok(nd_oci_store_open(root, &store));
                expect_ok(nd_oci_store_stage(store, &id, &fd));
                offer_make(store, fd, &apple, &offer);
                name = nd_format("apple@%s", nd_digest_text(&offer.offer.index, text));
                nd_strings_add(&offer.names, name);
                offer.offer.names = &offer.names;
                offer.offer.unpacked = &offer.unpacked;
                expect_ok(nd_oci_store_commit(store, id, &offer.offer, &image));
                assert_int_equal(image->digests.count, 1);
                assert_int_equal(image->tags.count, 2);
                expect_ok(nd_oci_store_find(store, name, &found));
                assert_ptr_equal(found, image);
                nd_oci_store_unstage(store, id);
                expect_error(nd_oci_store_commit(store, id, &offer.offer, &image), ND_PRECONDITION, "no staging directory");
        }
        assert_int_equal(offers_check(root), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_false_offer_is_refused_and_changes_nothing),
                cmocka_unit_test(a_repository_digest_is_a_name_too),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
