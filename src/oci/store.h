/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - a node's image store: content-addressed, safe against a kill or a full disk at any time
 *
 *      blobs/sha256/<hex>       manifests, indexes and configs
 *      layers/<chain hex>/fs    unpacked layers, with layer.json beside
 *      layers/<chain hex>/shifted-<uid>-<gid>  copies for pods' user namespaces (rootless nodes)
 *      images/<id hex>.json     records: what is not reachable from one is garbage
 *      staging/<id>/blobs/      of one pull: the only directory its fetcher can write, besides
 *      staging/partial/         downloads kept for another try
 *      staging/<id>/unpack/     of one pull: the only directory its unpacker can write; finished
 *                               layers are in layers/<chain hex>
 *      staging/trash-<n>/       to be removed by a child: nothing here walks a tree
 *
 * One process at a time has a store, and all calls are short: a few renames, reads and writes of
 * small files. Before a commit the caller makes sure that the staging directory's files are on disk
 * (syncfs) and that the programs which wrote them have exited. It passes the trash to a child that
 * removes it. The store owns the images; a pointer to one is valid until the next call that may
 * change something. */
#pragma once

#include "oci/config.h"
#include "oci/image.h"
#include "oci/layer.h"

struct nd_oci_store;

/* Opens the store at root, creating missing parts (but not root's parent). ND_PRECONDITION if
 * another process has it. Damage costs the image it belongs to, not the store:
 * nd_oci_store_problems() lists it. */
[[nodiscard]] struct nd_error *nd_oci_store_open(const char *root, struct nd_oci_store **ret);
void nd_oci_store_free(struct nd_oci_store *store);
static inline void nd_oci_store_done(struct nd_oci_store **store) {
        nd_oci_store_free(*store);
        *store = nullptr;
}
/* Messages for the log, since the start. */
const struct nd_strings *nd_oci_store_problems(const struct nd_oci_store *store);

/* Lookup. */

/* The next image; *position starts at 0; nullptr at the end. */
const struct nd_image *nd_oci_store_next(const struct nd_oci_store *store, size_t *position);
const struct nd_image *nd_oci_store_get(const struct nd_oci_store *store, const struct nd_digest *id);

/* Finds an image by an id ("sha256:<hex>", or its hex, complete or abbreviated to ND_ID_PREFIX
 * digits or more), or a name with a tag or digest, completed as nd_reference_parse() does. A name
 * that is also a short id is a name. *ret is nullptr if there is none; an ambiguous short id is an
 * error. */
[[nodiscard]] struct nd_error *nd_oci_store_find(const struct nd_oci_store *store, const char *text,
                                                 const struct nd_image **ret);

/* The config, read again and checked against its digest. ND_PRECONDITION for an artifact. */
[[nodiscard]] struct nd_error *nd_oci_store_config(const struct nd_oci_store *store, const struct nd_image *image,
                                                   struct nd_oci_config *ret);

struct nd_oci_store_usage {
        uint64_t bytes;
        uint64_t inodes;
};
/* Disk usage of layers, blobs and trash. Kept as sums; no tree is walked. */
struct nd_oci_store_usage nd_oci_store_usage(const struct nd_oci_store *store);
const char *nd_oci_store_root(const struct nd_oci_store *store);

/* Descriptors for fetcher and unpacker; owned by the store, do not close them. */
int nd_oci_store_layers_fd(const struct nd_oci_store *store);
int nd_oci_store_partial_fd(const struct nd_oci_store *store);

/* Commits. */

/* Creates a staging directory. While there is one, nothing is collected: its unpacker may rely on
 * every layer that it sees. The caller closes the descriptor and frees the id. */
[[nodiscard]] struct nd_error *nd_oci_store_stage(struct nd_oci_store *store, char **ret_id, int *ret_fd);

/* Ends it; its remaining contents become trash. */
void nd_oci_store_unstage(struct nd_oci_store *store, const char *id);

/* A layer at unpack/layers/<chain hex> of a staging directory, as reported by the unpacker that
 * hashed its stream. */
struct nd_oci_unpacked_layer {
        struct nd_digest chain;
        struct nd_layer layer;
};
struct nd_oci_unpacked_layers {
        struct nd_oci_unpacked_layer *items;
        size_t count;
        size_t capacity;
};

/* The fetcher's claims about its staging directory, as blobs/<hex>; and the unpacker's results. */
struct nd_oci_store_offer {
        struct nd_digest manifest;
        struct nd_digest index;         /* may be none */
        struct nd_digest config;        /* for an artifact the manifest: its config is not read */
        const struct nd_strings *names; /* tagged, or with the digest of manifest or index */
        /* Nullptr = none: every layer must be in the store already. */
        const struct nd_oci_unpacked_layers *unpacked;
        bool pinned;
        uint64_t pulled_at;
};

/* Checks an offer (hashes, chains, names) and makes it an image, or adds its names to the existing
 * one. A layer enters the store only under the chain that the unpacker reported. Every name belongs
 * to one image afterwards. After an error nothing is lost: layers that were moved in are there for
 * the next try. */
[[nodiscard]] struct nd_error *nd_oci_store_commit(struct nd_oci_store *store, const char *stage_id,
                                                   const struct nd_oci_store_offer *offer, const struct nd_image **ret);

/* Changes. */

[[nodiscard]] struct nd_error *nd_oci_store_pin(struct nd_oci_store *store, const struct nd_digest *id, bool pinned);

/* Removes a name; with the last one the image is removed. ND_NOT_FOUND if no image has it. */
[[nodiscard]] struct nd_error *nd_oci_store_untag(struct nd_oci_store *store, const char *name);

/* Removes an image with all its names. Its layers stay until they are collected. Works on a full
 * disk. */
[[nodiscard]] struct nd_error *nd_oci_store_remove(struct nd_oci_store *store, const struct nd_digest *id);

/* Garbage collection (collect.c). */

/* Whether a container needs a layer (its chain id) or a config (its digest) that no image
 * references any more. */
typedef bool (*nd_oci_store_used)(const struct nd_digest *digest, void *userdata);

struct nd_oci_store_collected {
        size_t layers;
        uint64_t bytes; /* of them */
        size_t blobs;
        bool deferred; /* nothing was collected, since there is a staging directory */
        /* ND_COLLECT_LAYERS were moved and others are left: call again, from the loop. */
        bool more;
};

enum {
        ND_COLLECT_LAYERS = 100, /* maximum moved in one call, so that it stays short */
};

/* Moves layers without references for grace_us into the trash and removes unreferenced blobs, and
 * partial downloads older than a day. A layer below a used one is used. */
[[nodiscard]] struct nd_error *nd_oci_store_collect(struct nd_oci_store *store, uint64_t grace_us, nd_oci_store_used used,
                                                    void *userdata, struct nd_oci_store_collected *ret);

/* Shifted copies (shifted.c): made by others beside a layer, for one block of IDs each. */

#define ND_SHIFTED "shifted" /* "-<uid>-<gid>", the first IDs of the block */

/* Counts the copies of these layers again, for the disk usage; of all layers if chains is
 * nullptr. */
void nd_oci_store_count_shifted(struct nd_oci_store *store, const struct nd_digest *chains, size_t count);

/* Whether a pod has the block with this first user ID. */
typedef bool (*nd_oci_store_block_used)(uint32_t uid, void *userdata);

/* Moves copies for blocks without a pod into the trash, except the first few of each layer. */
[[nodiscard]] struct nd_error *nd_oci_store_trim_shifted(struct nd_oci_store *store, nd_oci_store_block_used used,
                                                         void *userdata);

/* The path of the next directory to remove; nullptr if there is none. It is not returned again
 * until it is handed back. */
[[nodiscard]] struct nd_error *nd_oci_store_trash_take(struct nd_oci_store *store, char **ret_path);

/* Hands it back: removed, or to be retried later. */
void nd_oci_store_trash_done(struct nd_oci_store *store, const char *path, bool removed);
