/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a layer: the first byte selects the compression and how the rest is split into
 * pieces. The output of the tar reader is bounded, every file gets as many bytes as announced, and
 * no cleaned path leaves the root. The result must not depend on the split. */
#include <string.h>

#include <unit/fuzz.h>

#include "pull/archive/decompress.h"
#include "pull/archive/tar.h"
#include "pull/unpack/tree.h"

struct seen {
        struct nd_digest_hash hash;
        uint64_t promised;
        bool open;
};

static struct nd_error *on_entry(void *userdata, const struct pull_tar_entry *entry) {
        struct seen *seen = userdata;
        nd_autotext struct nd_text clean = {};
        nd_autoerror struct nd_error *error = nullptr;

        fuzz_require(!seen->open && strlen(entry->path) <= TAR_PATH && strlen(entry->link) <= TAR_PATH && *entry->path);
        fuzz_require(entry->xattr_count <= TAR_XATTRS && entry->mode <= 07777 && entry->mtime_ns < 1000000000);
        fuzz_require(entry->kind == TAR_FILE || entry->size == 0);
        error = pull_tree_clean_path(entry->path, &clean);
        if (!error) {
                const char *text = nd_text_get(&clean);

                fuzz_require(*text != '/' && !nd_streq(text, "..") && !nd_has_prefix(text, "../") && !strstr(text, "/../"));
                fuzz_require(!strstr(text, "//") && !strstr(text, "/./"));
        }
        nd_digest_hash_add(&seen->hash, entry->path, strlen(entry->path) + 1);
        nd_digest_hash_add(&seen->hash, entry->link, strlen(entry->link) + 1);
        for (size_t i = 0; i < entry->xattr_count; i++)
                nd_digest_hash_add(&seen->hash, entry->xattrs[i].value, entry->xattrs[i].length);
        seen->promised = entry->size;
        seen->open = true;
        return nullptr;
}

static struct nd_error *on_data(void *userdata, const char *bytes, size_t length) {
        struct seen *seen = userdata;

        fuzz_require(seen->open && length <= seen->promised);
        seen->promised -= length;
        nd_digest_hash_add(&seen->hash, bytes, length);
        return nullptr;
}

static struct nd_error *on_end(void *userdata) {
        struct seen *seen = userdata;

        fuzz_require(seen->open && seen->promised == 0);
        seen->open = false;
        return nullptr;
}

static struct nd_error *to_tar(void *userdata, const char *bytes, size_t length) {
        return pull_tar_feed(userdata, bytes, length);
}

static bool read_layer(const uint8_t *data, size_t size, enum nd_oci_compression compression, size_t piece,
                       struct nd_digest *ret) {
        struct seen seen = {};
        nd_cleanup(pull_tar_done) struct pull_tar *tar =
                pull_tar_new(&(struct pull_tar_sink) {.entry = on_entry, .data = on_data, .end = on_end, .userdata = &seen});
        nd_cleanup(pull_decompressor_done) struct pull_decompressor *decompressor =
                pull_decompressor_new(compression, 1 << 20, to_tar, tar);
        nd_autoerror struct nd_error *error = nullptr;

        nd_digest_hash_start(ND_HASH_SHA256, &seen.hash);
        for (size_t at = 0; at < size && !error; at += piece)
                error = pull_decompressor_feed(decompressor, (const char *) data + at, size - at < piece ? size - at : piece);
        if (!error)
                error = pull_decompressor_finish(decompressor);
        if (!error)
                error = pull_tar_finish(tar);
        *ret = nd_digest_hash_finish(&seen.hash);
        return !error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct nd_digest whole, cut;
        enum nd_oci_compression compression;
        bool good, good_cut;

        if (size < 1)
                return 0;
        compression = (enum nd_oci_compression)(data[0] & 3);
        good = read_layer(data + 1, size - 1, compression, size, &whole);
        good_cut = read_layer(data + 1, size - 1, compression, (size_t) (data[0] >> 2) + 1, &cut);
        fuzz_require(good == good_cut);
        if (good)
                fuzz_require(nd_digest_equal(&whole, &cut));
        return 0;
}
