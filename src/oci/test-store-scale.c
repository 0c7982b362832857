/* SPDX-License-Identifier: Apache-2.0 */
/* 500 images of 100 layers each, none of them shared: time to open the store, and its memory. */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"

enum {
        IMAGES = 500,
        LAYERS = 100,
        MOST_BYTES = 12 << 20,
};

static constexpr uint64_t most_us = 1 * ND_SECOND_US;

static struct nd_digest numbered(const char *what, int image, int layer) {
        nd_autofree char *text = nd_format("%s %d %d", what, image, layer);

        return nd_digest_of(ND_HASH_SHA256, text, strlen(text));
}

/* A record as the store writes it; the layers are empty directories, since their contents are not
 * read. */
static void put_image(const char *root, int number) {
        struct nd_digest id = numbered("config", number, 0), manifest = numbered("manifest", number, 0);
        char hex[ND_DIGEST_HEX], id_text[ND_DIGEST_TEXT], manifest_text[ND_DIGEST_TEXT];
        nd_autotext struct nd_text text = ND_TEXT(1 << 20);
        nd_autofree char *record = nullptr, *config = nullptr, *blob = nullptr;

        nd_text_addf(&text,
                     "{\"version\":1,\"serial\":%d,\"id\":\"%s\",\"manifest\":\"%s\",\"index\":\"\","
                     "\"tags\":[\"registry.example/team/app-%d:v1\"],\"digests\":[\"registry.example/team/app-%d@%s\"],"
                     "\"user\":\"1000\",\"size\":100000,\"pulledAt\":1,\"pinned\":false,\"layers\":[",
                     number + 1, nd_digest_text(&id, id_text), nd_digest_text(&manifest, manifest_text), number, number,
                     manifest_text);
        for (int i = 0; i < LAYERS; i++) {
                struct nd_digest chain = numbered("layer", number, i);
                nd_autofree char *directory = nd_format("%s/layers/%s", root, nd_digest_hex(&chain, hex));

                assert_int_equal(mkdir(directory, 0700), 0);
                nd_text_addf(&text, "%s{\"chain\":\"%s\",\"size\":1000,\"inodes\":10}", i > 0 ? "," : "", hex);
        }
        nd_text_add(&text, "]}");
        record = nd_format("images/%s.json", nd_digest_hex(&id, hex));
        config = nd_format("blobs/sha256/%s", hex);
        blob = nd_format("blobs/sha256/%s", nd_digest_hex(&manifest, hex));
        scratch_text(root, record, nd_text_get(&text));
        scratch_text(root, config, "{}");
        scratch_text(root, blob, "{}");
}

/* CPU time of this process, including the kernel's. */
static uint64_t busy_us(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* Opening syncs a directory and should not wait for the files that this test has just made. Only if
 * that is measured: syncfs() waits for all dirty data of the filesystem. */
static void settle(const char *root) {
        nd_autoclose int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(syncfs(fd), 0);
}

/* In steps short enough for a daemon's loop. */
static void collect_all(struct nd_oci_store *store, size_t expected) {
        struct nd_oci_store_collected collected = {.more = true};
        uint64_t longest = 0;
        size_t layers = 0;

        while (collected.more) {
                uint64_t start = nd_clock_us(), taken;

                expect_ok(nd_oci_store_collect(store, 0, nullptr, nullptr, &collected));
                taken = nd_clock_us() - start;
                longest = taken > longest ? taken : longest;
                layers += collected.layers;
        }
        print_message("# moved %zu layers to the trash in steps of at most %llu ms\n", layers,
                      (unsigned long long) longest / 1000);
        assert_int_equal(layers, expected);
}

static void five_hundred_images_of_a_hundred_layers_open_at_once_and_stay_small([[maybe_unused]] void **state) {
        scratch_directory root = scratch_make();
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nullptr;
        const struct nd_image *image;
        uint64_t start, taken, busy;
        size_t before, kept;

        scratch_mkdir(root, "images");
        scratch_mkdir(root, "layers");
        scratch_mkdir(root, "blobs/sha256");
        for (int i = 0; i < IMAGES; i++)
                put_image(root, i);

        if (nightly())
                settle(root);
        before = mallinfo2().uordblks;
        start = nd_clock_us();
        busy = busy_us();
        expect_ok(nd_oci_store_open(root, &store));
        busy = busy_us() - busy;
        taken = nd_clock_us() - start;
        kept = mallinfo2().uordblks - before;
        print_message("# opened in %llu ms, %llu ms of them busy; keeps %zu kB\n", (unsigned long long) taken / 1000,
                      (unsigned long long) busy / 1000, kept >> 10);
        assert_int_equal(nd_oci_store_problems(store)->count, 0);
        assert_int_equal(nd_oci_store_usage(store).bytes, IMAGES * LAYERS * 1000 + 2 * 2 * IMAGES);
        /* Other load on the host does not count. A sanitizer's allocator is slow, and does not show
         * how much memory is kept. */
        expect_figure(busy < (kept > 0 ? most_us : 10 * most_us));
        assert_true(kept < MOST_BYTES);

        start = nd_clock_us();
        for (int i = 0; i < IMAGES; i++) {
                nd_autofree char *name = nd_format("registry.example/team/app-%d:v1", i);

                expect_ok(nd_oci_store_find(store, name, &image));
                assert_non_null(image);
                assert_int_equal(image->layer_count, LAYERS);
        }
        taken = nd_clock_us() - start;
        print_message("# found each by name in %llu us\n", (unsigned long long) taken);

        start = nd_clock_us();
        for (int i = 0; i < IMAGES; i += 2) {
                struct nd_digest id = numbered("config", i, 0);
                nd_autoerror struct nd_error *error = nullptr;

                offers_hurry(true);
                error = nd_oci_store_remove(store, &id);
                offers_hurry(false);
                assert_null(error);
        }
        taken = nd_clock_us() - start;
        print_message("# removed half of them in %llu ms\n", (unsigned long long) taken / 1000);
        collect_all(store, IMAGES * LAYERS / 2);
        assert_int_equal(scratch_entries(root, "layers"), IMAGES * LAYERS / 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(five_hundred_images_of_a_hundred_layers_open_at_once_and_stay_small),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
