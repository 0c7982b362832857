/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - the identity of unpacked layers: chain ids, and the file layer.json beside each
 *
 * A layer's tree depends on what lies below it, so it is known by its chain: the diff id of the lowest layer, and then
 * sha256(chain below + " " + diff id). Chains are sha256 throughout: diff ids of another kind are refused by the config's reader. */
#pragma once

#include "oci/digest.h"

/* below is nullptr for the lowest layer. */
struct nd_digest nd_layer_chain_of(const struct nd_digest *below, const struct nd_digest *diff_id);

/* What layer.json says. Written and synced before a layer becomes visible; read back when nobody remembers the layer. */
struct nd_layer {
        struct nd_digest diff_id;
        struct nd_digest parent; /* the chain below, none for the lowest */
        uint64_t size;           /* bytes that the tree takes on disk */
        uint64_t inodes;
};

enum {
        ND_LAYER_CEILING = 4096, /* bytes of layer.json */
};
#define ND_LAYER_FILE "layer.json"
#define ND_LAYER_TREE "fs"
#define ND_LAYER_SIZE (UINT64_C(1) << 50) /* what size and inodes may say; sums over a store cannot overflow */

[[nodiscard]] char *nd_layer_format(const struct nd_layer *layer);
[[nodiscard]] struct nd_error *nd_layer_parse(const char *bytes, size_t length, struct nd_layer *ret);
