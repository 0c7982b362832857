/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - fetches one image from its index or manifest down to its layers, from any source */
#pragma once

#include "base/strings.h"
#include "pull/fetch/layers.h"
#include "pull/fetch/request.h"

/* Source of documents: a registry or an archive. Its data has the descriptor's digest and size. */
struct pull_image_source {
        struct nd_error *(*document)(void *userdata, const struct nd_oci_descriptor *descriptor, size_t ceiling,
                                     char **ret_bytes, size_t *ret_length);
        void *userdata;
};

/* The result that is reported to the daemon. Owns its members. */
struct pull_image {
        struct nd_digest index, manifest;
        struct nd_digest config; /* the image's ID; the manifest's digest for an artifact */
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

/* The document to start from, with its digest. */
struct pull_image_root {
        const char *bytes;
        size_t length;
        const char *media_type; /* nullptr = unknown */
        struct nd_digest digest;
};

/* Fetches the image for the request's platform: documents as blobs/<hex>, layers through the
 * unpacker. */
[[nodiscard]] struct nd_error *pull_image_fetch(struct pull_layers_context *context, const struct pull_request *request,
                                                const struct pull_image_source *source, const struct pull_image_root *root,
                                                struct pull_image *ret);

/* Makes everything durable through the unpacker and reports it to the daemon. */
[[nodiscard]] struct nd_error *pull_images_finish(const struct pull_layers_context *context, const struct pull_images *images);
