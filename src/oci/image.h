/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - an image in the store, and its record images/<hex>.json
 *
 * The record is the image: written last on commit, removed first on removal. @serial orders records
 * in time: if a crash left one name in two records, the one with the higher serial owns it. */
#pragma once

#include "base/strings.h"
#include "base/text.h"
#include "oci/layer.h"
#include "oci/layers.h"

enum {
        ND_IMAGE_CEILING = 4 << 20, /* maximum size of a record */
        ND_IMAGE_NAMES = 1000,      /* maximum tags of one image, and as many digests */
        ND_IMAGE_VERSION = 1,
};

struct nd_image {
        struct nd_digest id;       /* Image.id: the config, or the manifest of an artifact */
        struct nd_digest manifest; /* of the last pull */
        struct nd_digest index;    /* from which the manifest was selected; may be none */
        struct nd_strings tags;    /* "docker.io/library/busybox:1.37" */
        struct nd_strings digests; /* "docker.io/library/busybox@sha256:..." */
        char *user;                /* as in the config; parse it with nd_oci_user_parse() */
        char *artifact_type;       /* nullptr = a container image */
        /* Bytes on disk: layers, config and manifests; a shared layer counts for every image that
         * has it. */
        uint64_t size;
        uint64_t pulled_at; /* nanoseconds since 1970 */
        bool pinned;        /* exempt from the kubelet's garbage collection */
        /* The highest owner in any layer; known if it is for all layers. */
        struct nd_layer_owner owner;

        /* For the store only. */
        uint64_t serial;
        /* Topmost layer, with a reference; nullptr for an image without layers. */
        struct nd_layers_entry *top;
        size_t layer_count;
        bool stale; /* its file is out of date */
};

void nd_image_free(struct nd_image *image);
static inline void nd_image_done(struct nd_image **image) {
        nd_image_free(*image);
        *image = nullptr;
}

/* A copy that is not in the index yet; it references the layers as the original does. */
[[nodiscard]] struct nd_image *nd_image_copy(const struct nd_image *image);

/* The layers' chains, lowest first: ret has room for layer_count. */
void nd_image_chains(const struct nd_image *image, struct nd_digest *ret);

[[nodiscard]] struct nd_error *nd_image_format(const struct nd_image *image, struct nd_text *ret);

/* One layer of a parsed record. */
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

/* Parses a record; the layers are returned separately, lowest first, since the store looks them up.
 * ND_UNIMPLEMENTED if a newer version wrote it. */
[[nodiscard]] struct nd_error *nd_image_parse(const char *bytes, size_t length, struct nd_image **ret,
                                              struct nd_image_layers *ret_layers);
