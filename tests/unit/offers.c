/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/offers.h>

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <unit/expect.h>
#include <unit/scratch.h>

#include "base/map.h"
#include "base/text.h"
#include "oci/layer.h"
#include "oci/manifest.h"
#include "sys/calls.h"

#define OCI "application/vnd.oci.image."

void offer_done(struct offer *offer) {
        nd_strings_done(&offer->names);
        nd_vector_done(&offer->unpacked);
}

static void put(int dir_fd, const char *path, const char *text) {
        int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
                err(EXIT_FAILURE, "write '%s'", path);
        (void) close(fd);
}

static void make(int dir_fd, const char *path) {
        if (mkdirat(dir_fd, path, 0700) < 0 && errno != EEXIST)
                err(EXIT_FAILURE, "make '%s'", path);
}

static struct nd_digest put_blob(int stage_fd, const char *text) {
        struct nd_digest digest = nd_digest_of(ND_HASH_SHA256, text, strlen(text));
        char hex[ND_DIGEST_HEX];
        nd_autofree char *path = nd_format("blobs/%s", nd_digest_hex(&digest, hex));

        if (stage_fd >= 0)
                put(stage_fd, path, text);
        return digest;
}

static struct nd_digest diff_id_of(const struct offer_plan *plan, unsigned layer) {
        nd_autofree char *text =
                layer < plan->shared ? nd_format("shared %u", layer) : nd_format("image %u layer %u", plan->number, layer);

        return nd_digest_of(ND_HASH_SHA256, text, strlen(text));
}

static void put_layer(int stage_fd, const struct nd_digest *chain, const struct nd_layer *layer) {
        char hex[ND_DIGEST_HEX];
        nd_autofree char *directory = nd_format("unpack/layers/%s", nd_digest_hex(chain, hex)),
                         *tree = nd_format("%s/fs", directory), *mark = nd_format("%s/fs/mark", directory),
                         *file = nd_format("%s/" ND_LAYER_FILE, directory), *text = nd_layer_format(layer);

        make(stage_fd, directory);
        make(stage_fd, tree);
        put(stage_fd, mark, hex);
        put(stage_fd, file, text);
}

static bool store_has(const struct nd_oci_store *store, const struct nd_digest *chain) {
        char hex[ND_DIGEST_HEX];
        struct stat st;

        return store && fstatat(nd_oci_store_layers_fd(store), nd_digest_hex(chain, hex), &st, 0) == 0;
}

/* The config's text; puts the layers on the way when there is a staging directory, and says
 * which. */
static char *make_layers(const struct nd_oci_store *store, int stage_fd, const struct offer_plan *plan,
                         struct nd_oci_unpacked_layers *unpacked) {
        struct nd_text diff_ids = ND_TEXT(1 << 20);
        nd_autofree char *list = nullptr;
        struct nd_digest below = {};
        char text[ND_DIGEST_TEXT];

        for (unsigned i = 0; i < plan->shared + plan->own; i++) {
                struct nd_layer layer = {.diff_id = diff_id_of(plan, i), .parent = below, .size = 1000 + i, .inodes = 2};
                struct nd_digest chain = nd_layer_chain_of(i > 0 ? &below : nullptr, &layer.diff_id);

                if (stage_fd >= 0 && !store_has(store, &chain)) {
                        put_layer(stage_fd, &chain, &layer);
                        nd_vector_push(unpacked, ((struct nd_oci_unpacked_layer) {.chain = chain, .layer = layer}));
                }
                nd_text_addf(&diff_ids, "%s\"%s\"", i > 0 ? "," : "", nd_digest_text(&layer.diff_id, text));
                below = chain;
        }
        list = nd_text_steal(&diff_ids);
        return nd_format("{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{\"User\":\"%u\"},"
                         "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[%s]}}",
                         1000 + plan->number, list ? list : "");
}

struct nd_digest offer_id(const struct offer_plan *plan) {
        nd_autofree char *config = make_layers(nullptr, -1, plan, nullptr);

        return nd_digest_of(ND_HASH_SHA256, config, strlen(config));
}

static char *manifest_text(const struct offer_plan *plan, const struct nd_digest *config_digest, size_t config_length) {
        nd_autotext struct nd_text layers = ND_TEXT(1 << 20);
        char text[ND_DIGEST_TEXT];

        for (unsigned i = 0; i < plan->shared + plan->own; i++) {
                struct nd_digest diff_id = diff_id_of(plan, i);

                nd_text_addf(&layers, "%s{\"mediaType\":\"" OCI "layer.v1.tar\",\"digest\":\"%s\",\"size\":1}",
                             i > 0 ? "," : "", nd_digest_text(&diff_id, text));
        }
        return nd_format("{\"schemaVersion\":2,\"config\":{\"mediaType\":\"" OCI
                         "config.v1+json\",\"digest\":\"%s\",\"size\":%zu},\"layers\":[%s]}",
                         nd_digest_text(config_digest, text), config_length, nd_text_get(&layers));
}

void offer_make(const struct nd_oci_store *store, int stage_fd, const struct offer_plan *plan, struct offer *ret) {
        nd_autofree char *config = nullptr, *manifest = nullptr, *index = nullptr;
        char text[ND_DIGEST_TEXT];

        make(stage_fd, "blobs");
        make(stage_fd, "unpack");
        make(stage_fd, "unpack/layers");
        *ret = (struct offer) {};
        config = make_layers(store, stage_fd, plan, &ret->unpacked);
        ret->offer.config = put_blob(stage_fd, config);
        manifest = manifest_text(plan, &ret->offer.config, strlen(config));
        ret->offer.manifest = put_blob(stage_fd, manifest);
        if (plan->index) {
                index = nd_format("{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":\"" OCI
                                  "manifest.v1+json\",\"digest\":\"%s\",\"size\":%zu}]}",
                                  nd_digest_text(&ret->offer.manifest, text), strlen(manifest));
                ret->offer.index = put_blob(stage_fd, index);
        }
        for (size_t i = 0; i < nd_count_of(plan->names) && plan->names[i]; i++)
                nd_strings_add(&ret->names, plan->names[i]);
        ret->offer.pulled_at = 1;
}

struct nd_error *offer_commit(struct nd_oci_store *store, const struct offer_plan *plan) {
        nd_cleanup(offer_done) struct offer offer = {};
        nd_autofree char *id = nullptr;
        nd_autoclose int fd = -EBADF;
        const struct nd_image *image;
        struct nd_error *error;

        nd_try(nd_oci_store_stage(store, &id, &fd));
        offer_make(store, fd, plan, &offer);
        offer.offer.names = &offer.names;
        offer.offer.unpacked = &offer.unpacked;
        error = nd_oci_store_commit(store, id, &offer.offer, &image);
        nd_oci_store_unstage(store, id);
        return error;
}

size_t offers_collect(struct nd_oci_store *store, nd_oci_store_used used, void *userdata) {
        struct nd_oci_store_collected collected;

        expect_ok(nd_oci_store_collect(store, 0, used, userdata, &collected));
        assert_false(collected.deferred);
        return collected.layers;
}

void offers_empty_trash(struct nd_oci_store *store) {
        for (;;) {
                nd_autofree char *path = nullptr;

                expect_ok(nd_oci_store_trash_take(store, &path));
                if (!path)
                        return;
                nd_oci_store_trash_done(store, path, true);
                scratch_remove(&path); /* frees the path, too */
        }
}

static int no_fsync([[maybe_unused]] int fd) {
        return 0;
}

void offers_hurry(bool hurry) {
        static struct nd_calls table;

        table = nd_calls_real;
        table.fsync = no_fsync;
        nd_sys = hurry ? &table : &nd_calls_real;
}

/* Checks */

static void check_layer(const char *root, const struct nd_digest *chain) {
        char hex[ND_DIGEST_HEX];
        nd_autofree char *mark = nd_format("layers/%s/fs/mark", nd_digest_hex(chain, hex)),
                         *file = nd_format("layers/%s/" ND_LAYER_FILE, hex), *says = scratch_read(root, mark);

        if (!says || !nd_streq(says, hex) || !scratch_has(root, file))
                fail_msg("the layer %s is not whole", hex);
}

static void check_names(const struct nd_oci_store *store, const struct nd_image *image, const struct nd_strings *names,
                        struct nd_map *seen) {
        nd_vector_each (name, names) {
                const struct nd_image *found;

                if (nd_map_has(seen, *name))
                        fail_msg("'%s' is on two images", *name);
                (void) nd_map_put(seen, *name, nullptr);
                expect_ok(nd_oci_store_find(store, *name, &found));
                assert_ptr_equal(found, image);
        }
}

static void check_image(const char *root, const struct nd_oci_store *store, const struct nd_image *image, struct nd_map *names,
                        struct nd_map *chains, struct nd_map *blobs) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};
        nd_autofree struct nd_digest *list = nd_calloc(image->layer_count + 1, sizeof *list);
        const struct nd_digest *needed[] = {&image->id, &image->manifest, &image->index};
        char hex[ND_DIGEST_HEX];

        expect_ok(nd_oci_store_config(store, image, &config));
        assert_int_equal(config.diff_ids.count, image->layer_count);
        nd_image_chains(image, list);
        for (size_t i = 0; i < image->layer_count; i++) {
                struct nd_digest chain = nd_layer_chain_of(i > 0 ? &list[i - 1] : nullptr, &config.diff_ids.items[i]);

                assert_true(nd_digest_equal(&chain, &list[i]));
                check_layer(root, &chain);
                (void) nd_map_put(chains, nd_digest_hex(&chain, hex), nullptr);
        }
        for (size_t i = 0; i < nd_count_of(needed); i++) {
                nd_autofree char *path = nd_format("blobs/sha256/%s", nd_digest_hex(needed[i], hex));

                if (!nd_digest_is_set(needed[i]))
                        continue;
                assert_true(scratch_has(root, path));
                (void) nd_map_put(blobs, hex, nullptr);
        }
        check_names(store, image, &image->tags, names);
        check_names(store, image, &image->digests, names);
}

static size_t check_images(const char *root, const struct nd_oci_store *store, size_t *ret_chains, size_t *ret_blobs) {
        nd_cleanup(nd_map_done) struct nd_map names = {}, chains = {}, blobs = {};
        const struct nd_image *image;
        size_t count = 0;

        for (size_t at = 0; (image = nd_oci_store_next(store, &at)); count++)
                check_image(root, store, image, &names, &chains, &blobs);
        *ret_chains = chains.count;
        *ret_blobs = blobs.count;
        return count;
}

size_t offers_check(const char *root) {
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        struct nd_oci_store_collected collected;
        size_t count, chains, blobs, again;

        expect_ok(nd_oci_store_open(root, &store));
        nd_vector_each (problem, nd_oci_store_problems(store)) {
                fail_msg("%s", *problem);
        }
        count = check_images(root, store, &chains, &blobs);
        do
                expect_ok(nd_oci_store_collect(store, 0, nullptr, nullptr, &collected));
        while (collected.more);
        assert_false(collected.deferred);
        offers_empty_trash(store);
        again = check_images(root, store, &chains, &blobs);
        assert_int_equal(count, again);
        assert_int_equal(scratch_entries(root, "layers"), chains);
        assert_int_equal(scratch_entries(root, "blobs/sha256"), blobs);
        assert_int_equal(scratch_entries(root, "images"), count);
        assert_int_equal(scratch_entries(root, "staging"), 1); /* partial */
        return count;
}
