/* SPDX-License-Identifier: Apache-2.0 */
/* store-state.h - shared by store.c, commit.c, collect.c and shifted.c only */
#pragma once

#include "base/map.h"
#include "oci/store.h"
#include "sys/file.h"

#define ND_STORE_PARTIAL "partial"
#define ND_STORE_TRASH "trash-"
#define ND_STORE_PULL "pull-"

enum {
        ND_STORE_DIRECTORY_MODE = 0700,
        ND_STORE_FILE_MODE = 0600,
        ND_STORE_RECORDS = 100000, /* maximum files in images/ and in blobs/ */
        ND_STORE_LAYERS = 1 << 20, /* maximum directories in layers/ */
        ND_STORE_ID = 32,          /* length of a name in staging/ */
};

struct nd_oci_store_trash {
        char *name; /* in staging/ */
        uint64_t size;
        uint64_t inodes;
        bool taken;
};

struct nd_oci_store {
        char *root;
        int root_fd;
        int lock_fd;
        int images_fd;
        int layers_fd;
        int staging_fd;
        int partial_fd;
        int blob_fds[ND_HASH_SHA512 + 1]; /* by enum nd_digest_kind; [ND_HASH_NONE] is never open */
        struct nd_layers layers;
        nd_vector(struct nd_image *) images;
        struct nd_map names; /* canonical name -> struct nd_image */
        uint64_t serial;     /* of the newest record */
        uint64_t blob_bytes;
        uint64_t blob_count;
        bool blob_garbage; /* there may be unreferenced blobs */
        bool moved_layers; /* renames of layers into the trash may not be on disk yet */
        /* A record that could not be read: its layers are unknown, so nothing is collected. */
        char *unreadable;
        struct nd_strings stages;
        nd_vector(struct nd_oci_store_trash) trash;
        struct nd_strings problems;
};

struct nd_image *nd_oci_store_image(const struct nd_oci_store *store, const struct nd_digest *id);

/* Puts an image into the index in place of the one with its id, if any, and removes its names from
 * all others. Images whose file then differs are stale. The store owns the image. */
void nd_oci_store_adopt(struct nd_oci_store *store, struct nd_image *image);

/* Writes an image's record under the next serial. After an error the file may have the old or the
 * new contents. */
[[nodiscard]] struct nd_error *nd_oci_store_write_record(struct nd_oci_store *store, struct nd_image *image);

/* Rewrites files that are stale because of an earlier error. If that fails again they stay
 * stale. */
void nd_oci_store_settle(struct nd_oci_store *store);

/* Adds a canonical name to an image's tags or digests, unless it is there. */
[[nodiscard]] struct nd_error *nd_oci_store_add_name(struct nd_image *image, const char *name);

[[nodiscard]] struct nd_error *nd_oci_store_read_blob(const struct nd_oci_store *store, const struct nd_digest *digest,
                                                      char **ret, size_t *ret_length);
/* The contents of a layer's layer.json. */
[[nodiscard]] struct nd_error *nd_oci_store_read_layer(const struct nd_oci_store *store, const struct nd_digest *chain,
                                                       struct nd_layer *ret);
void nd_oci_store_add_trash(struct nd_oci_store *store, const char *name, uint64_t size, uint64_t inodes);
[[nodiscard]] struct nd_error *nd_oci_store_make_staging(struct nd_oci_store *store, const char *prefix,
                                                         char ret_name[static ND_STORE_ID], int *ret_fd);
[[gnu::format(printf, 2, 3)]] void nd_oci_store_problem(struct nd_oci_store *store, const char *format, ...);

enum {
        ND_STORE_RECORD_NAME = ND_DIGEST_HEX + sizeof ".json",
};
/* "<hex>.json". */
const char *nd_oci_store_record_name(const struct nd_digest *id, char ret[static ND_STORE_RECORD_NAME]);
