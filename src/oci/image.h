/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - an image that the store has, and its record images/<hex>.json
 *
 * The record is the image: written last when it comes, removed first when it goes. @serial orders records in time: when a crash
 * left one name in two records, the younger one has it. */
#pragma once

#include "base/strings.h"
#include "base/text.h"
#include "oci/layers.h"

enum {
        ND_IMAGE_CEILING = 4 << 20, /* bytes of a record */
        ND_IMAGE_NAMES = 1000,      /* tags of one image, and as many digests */
        ND_IMAGE_VERSION = 1,
};

struct nd_image {
        struct nd_digest id;       /* of the config; Image.id in the CRI */
        struct nd_digest manifest; /* what it was pulled by last */
        struct nd_digest index;    /* where the manifest was chosen from; may be none */
        struct nd_strings tags;    /* "docker.io/library/busybox:1.37" */
        struct nd_strings digests; /* "docker.io/library/busybox@sha256:..." */
        char *user;                /* as the config has it; nd_oci_user_parse() reads it */
        uint64_t size;      /* bytes on disk: layers, config and manifests; layers are counted for every image that has them */
        uint64_t pulled_at; /* nanoseconds since 1970 */
        bool pinned;        /* not to be removed by the kubelet's garbage collection */

        /* The store's own. */
        uint64_t serial;
        struct nd_layers_entry *top; /* topmost layer, held; nullptr for an image without layers */
        size_t layer_count;
        bool stale; /* its file says something else */
};

void nd_image_free(struct nd_image *image);
static inline void nd_image_done(struct nd_image **image) {
        nd_image_free(*image);
        *image = nullptr;
}

/* A copy that is held by nobody yet; it holds the layers as the original does. */
[[nodiscard]] struct nd_image *nd_image_copy(const struct nd_image *image);

/* The layers' chains, lowest first: ret has room for layer_count. */
void nd_image_chains(const struct nd_image *image, struct nd_digest *ret);

[[nodiscard]] struct nd_error *nd_image_format(const struct nd_image *image, struct nd_text *ret);

/* One layer of a record that was read. */
struct nd_image_layer {
        struct nd_digest chain;
        uint64_t size;
        uint64_t inodes;
};
struct nd_image_layers {
        struct nd_image_layer *items;
        size_t count;
        size_t capacity;
};

/* Reads a record; the layers come apart, lowest first, since they are the store's to find. ND_UNIMPLEMENTED when a newer version
 * wrote it. */
[[nodiscard]] struct nd_error *nd_image_parse(const char *bytes, size_t length, struct nd_image **ret,
                                              struct nd_image_layers *ret_layers);
