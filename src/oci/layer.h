/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - the identity of unpacked layers: chain ids, and the file layer.json beside each
 *
 * A layer's tree depends on the layers below it, so it is identified by its chain: the diff id of
 * the lowest layer, and then sha256(chain below + " " + diff id). Chains are sha256 throughout: the
 * config parser refuses diff ids of another kind. */
#pragma once

#include "base/json.h"
#include "oci/digest.h"

/* below is nullptr for the lowest layer. */
struct nd_digest nd_layer_chain_of(const struct nd_digest *below, const struct nd_digest *diff_id);

enum {
        ND_LAYER_IDS = 65536,      /* IDs of an ordinary pod: owners below are not recorded */
        ND_LAYER_OWNER_PATH = 256, /* maximum length of a recorded path, with the terminator */
};

/* The file with the highest owner or group, if a pod may not have that ID. The path is a claim of
 * the archive's reader: it may not exist, or be hidden by a layer above. */
struct nd_layer_owner {
        bool known; /* false: an older version unpacked the layer */
        uint32_t uid, gid;
        char path[ND_LAYER_OWNER_PATH]; /* UTF-8, relative to the root; "" = no such file */
};

/* Takes a file's owner if it is higher. A path that is too long or not UTF-8 is left out: the
 * record is advice. */
void nd_layer_owner_consider(struct nd_layer_owner *owner, uint32_t uid, uint32_t gid, const char *path);
/* Whether a pod with so many IDs lacks one of them. */
[[nodiscard]] bool nd_layer_owner_is_outside(const struct nd_layer_owner *owner, uint64_t uids, uint64_t gids);
/* As the member "owner" of a record; nothing if it is not known. */
void nd_layer_owner_format(struct nd_json_out *out, const struct nd_layer_owner *owner);
[[nodiscard]] struct nd_error *nd_layer_owner_parse(yyjson_val *record, struct nd_layer_owner *ret);

/* Contents of layer.json. Written and synced before a layer becomes visible; read back if no record
 * has the layer. */
struct nd_layer {
        struct nd_digest diff_id;
        struct nd_digest parent; /* the chain below, none for the lowest */
        uint64_t size;           /* size of the tree on disk */
        uint64_t inodes;
        struct nd_layer_owner owner;
};

enum {
        ND_LAYER_CEILING = 4096, /* maximum size of layer.json */
};
#define ND_LAYER_FILE "layer.json"
#define ND_LAYER_TREE "fs"
/* Maximum of size and inodes; sums over a store cannot overflow. */
#define ND_LAYER_SIZE (UINT64_C(1) << 50)

[[nodiscard]] char *nd_layer_format(const struct nd_layer *layer);
[[nodiscard]] struct nd_error *nd_layer_parse(const char *bytes, size_t length, struct nd_layer *ret);
