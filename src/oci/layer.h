/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - the identity of unpacked layers: chain ids, and the file layer.json beside each
 *
 * A layer's tree depends on the layers below it, so it is identified by its chain: the diff id of
 * the lowest layer, and then sha256(chain below + " " + diff id). Chains are sha256 throughout: the
 * config parser refuses diff ids of another kind. */
#pragma once

#include "oci/digest.h"

/* below is nullptr for the lowest layer. */
struct nd_digest nd_layer_chain_of(const struct nd_digest *below, const struct nd_digest *diff_id);

/* Contents of layer.json. Written and synced before a layer becomes visible; read back if no record
 * has the layer. */
struct nd_layer {
        struct nd_digest diff_id;
        struct nd_digest parent; /* the chain below, none for the lowest */
        uint64_t size;           /* size of the tree on disk */
        uint64_t inodes;
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
