/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - one image from its topmost document down to its layers, wherever the bytes come from */
#pragma once

#include "base/strings.h"
#include "pull/fetch/layers.h"
#include "pull/fetch/request.h"

/* Where documents come from: a registry or an archive. The bytes that it gives have the descriptor's digest and size. */
struct pull_image_source {
        struct nd_error *(*document)(void *userdata, const struct nd_oci_descriptor *descriptor, size_t ceiling,
                                     char **ret_bytes, size_t *ret_length);
        void *userdata;
};

/* What the daemon hears at the end. Owns what is in it. */
struct pull_image {
        struct nd_digest index, manifest, config;
        uint64_t config_size;
        struct nd_strings names;
        struct pull_layer_results layers;
};

struct pull_images { /* see base/vector.h */
        struct pull_image *items;
        size_t count, capacity;
};

void pull_image_done(struct pull_image *image);
void pull_images_done(struct pull_images *images);

/* A document to start from, with its digest. */
struct pull_image_root {
        const char *bytes;
        size_t length;
        const char *media_type; /* nullptr = not known */
        struct nd_digest digest;
};

/* Brings the image for the request's platform: its documents as blobs/<hex>, its layers by way of the unpacker. */
[[nodiscard]] struct nd_error *pull_image_fetch(struct pull_layers_context *context, const struct pull_request *request,
                                                const struct pull_image_source *source, const struct pull_image_root *root,
                                                struct pull_image *ret);

/* Lets the unpacker make all of it durable, and tells the daemon. */
[[nodiscard]] struct nd_error *pull_images_finish(const struct pull_layers_context *context, const struct pull_images *images);
