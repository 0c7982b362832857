/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the images that a node has: content-addressed, safe against a kill or a full disk at any instant
 *
 *      blobs/sha256/<hex>       manifests, indexes and configs
 *      layers/<chain hex>/fs    unpacked layers, with layer.json beside
 *      images/<config hex>.json records: what is not reachable from one is garbage
 *      staging/<id>/blobs/      of one pull: all that its fetcher can write, besides
 *      staging/partial/         downloads kept for another try
 *      staging/<id>/unpack/     of one pull: all that its unpacker can write; finished layers are in layers/<chain hex>
 *      staging/trash-<n>/       what is to be removed, by a child: nothing here walks a tree
 *
 * One process at a time has a store, and all calls are short: a few renames, reads and writes of small files. Whoever commits sees
 * to it that the staging directory's files are on disk (syncfs), that the programs which wrote them are gone, and hands the trash to
 * a child that removes it. Images are the store's; a pointer to one is good until the next call that may change something. */
#pragma once

#include "oci/config.h"
#include "oci/image.h"
#include "oci/layer.h"

struct nd_oci_store;

/* Takes the store at root, making what is missing (but not root's parent). ND_PRECONDITION when another process has it. What is
 * damaged costs the image it belongs to, not the store: nd_oci_store_problems() says what was found. */
[[nodiscard]] struct nd_error *nd_oci_store_open(const char *root, struct nd_oci_store **ret);
void nd_oci_store_free(struct nd_oci_store *store);
static inline void nd_oci_store_done(struct nd_oci_store **store) {
        nd_oci_store_free(*store);
        *store = nullptr;
}
const struct nd_strings *nd_oci_store_problems(const struct nd_oci_store *store); /* sentences for the log, since the start */

/* Looking. */

/* The next image; *position starts at 0; nullptr at the end. */
const struct nd_image *nd_oci_store_next(const struct nd_oci_store *store, size_t *position);
const struct nd_image *nd_oci_store_get(const struct nd_oci_store *store, const struct nd_digest *id);

/* What a kubelet or a person means: an id ("sha256:<hex>", or its hex, whole or cut short to ND_ID_PREFIX digits or more), or a name with
 * a tag or digest, completed as nd_reference_parse() does. A name that is also a short id is a name. *ret is nullptr when there
 * is none; a short id that several images have is an error. */
[[nodiscard]] struct nd_error *nd_oci_store_find(const struct nd_oci_store *store, const char *text,
                                                 const struct nd_image **ret);

/* The config, read again and checked against its digest; or its bytes. */
[[nodiscard]] struct nd_error *nd_oci_store_config(const struct nd_oci_store *store, const struct nd_image *image,
                                                   struct nd_oci_config *ret);
[[nodiscard]] struct nd_error *nd_oci_store_config_bytes(const struct nd_oci_store *store, const struct nd_image *image,
                                                         char **ret, size_t *ret_length);

struct nd_oci_store_usage {
        uint64_t bytes;
        uint64_t inodes;
};
/* What layers, blobs and trash take. Kept as sums; nothing is walked. */
struct nd_oci_store_usage nd_oci_store_usage(const struct nd_oci_store *store);
const char *nd_oci_store_root(const struct nd_oci_store *store);

/* Descriptors for fetcher and unpacker; the store's own, not to be closed. */
int nd_oci_store_layers_fd(const struct nd_oci_store *store);
int nd_oci_store_partial_fd(const struct nd_oci_store *store);

/* Coming. */

/* Makes a staging directory. While there is one, nothing is collected: its unpacker may count on every layer that it sees. The
 * descriptor and the id are the caller's to close and free. */
[[nodiscard]] struct nd_error *nd_oci_store_stage(struct nd_oci_store *store, char **ret_id, int *ret_fd);

/* Ends it, whatever is left in it; what is left becomes trash. */
void nd_oci_store_unstage(struct nd_oci_store *store, const char *id);

/* A layer at unpack/layers/<chain hex> of a staging directory, as the unpacker says it that hashed its stream. */
struct nd_oci_unpacked_layer {
        struct nd_digest chain;
        struct nd_layer layer;
};
struct nd_oci_unpacked_layers {
        struct nd_oci_unpacked_layer *items;
        size_t count;
        size_t capacity;
};

/* What the fetcher says it has put into its staging directory, as blobs/<hex>; and what the unpacker did. */
struct nd_oci_store_offer {
        struct nd_digest manifest;
        struct nd_digest index; /* may be none */
        struct nd_digest config;
        const struct nd_strings *names;                /* tagged, or with the digest of manifest or index */
        const struct nd_oci_unpacked_layers *unpacked; /* nullptr = none: every layer must be in the store already */
        bool pinned;
        uint64_t pulled_at;
};

/* Checks an offer (hashes, chains, names) and makes it an image, or adds its names to the one that is
 * there. A layer enters the store only under the chain that the unpacker gave it. Every name belongs to one image afterwards. With an error nothing is lost: layers that came in are there for the
 * next try. */
[[nodiscard]] struct nd_error *nd_oci_store_commit(struct nd_oci_store *store, const char *stage_id,
                                                   const struct nd_oci_store_offer *offer, const struct nd_image **ret);

/* Changing. */

[[nodiscard]] struct nd_error *nd_oci_store_tag(struct nd_oci_store *store, const struct nd_digest *id, const char *name);
[[nodiscard]] struct nd_error *nd_oci_store_pin(struct nd_oci_store *store, const struct nd_digest *id, bool pinned);

/* Takes a name away; with the last one the image goes. ND_NOT_FOUND when no image has it. */
[[nodiscard]] struct nd_error *nd_oci_store_untag(struct nd_oci_store *store, const char *name);

/* Removes an image with all its names. Its layers stay until they are collected. Works on a full disk. */
[[nodiscard]] struct nd_error *nd_oci_store_remove(struct nd_oci_store *store, const struct nd_digest *id);

/* Going (collect.c). */

/* Whether a container needs a layer (its chain id) or a config (its digest) that no image holds any more. */
typedef bool (*nd_oci_store_used)(const struct nd_digest *digest, void *userdata);

struct nd_oci_store_collected {
        size_t layers;
        uint64_t bytes; /* of them */
        size_t blobs;
        bool deferred; /* nothing was looked at, since there is a staging directory */
        bool more;     /* ND_COLLECT_LAYERS were moved and others are left: call again, from the loop */
};

enum {
        ND_COLLECT_LAYERS = 100, /* moved in one call, so that it stays short */
};

/* Moves layers that nobody has held for grace_us into the trash and removes blobs that nobody needs, and partial downloads of
 * yesterday. A layer below one that is used is used. */
[[nodiscard]] struct nd_error *nd_oci_store_collect(struct nd_oci_store *store, uint64_t grace_us, nd_oci_store_used used,
                                                    void *userdata, struct nd_oci_store_collected *ret);

/* The next directory to remove, by its path; nullptr when there is none. It is not given again until it is handed back. */
[[nodiscard]] struct nd_error *nd_oci_store_trash_take(struct nd_oci_store *store, char **ret_path);

/* Hands it back: removed, or to be tried again later. */
void nd_oci_store_trash_done(struct nd_oci_store *store, const char *path, bool removed);
