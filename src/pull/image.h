/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - one image from its topmost document down to its layers, wherever the bytes come from */
#pragma once

#include "base/strings.h"
#include "pull/layers.h"
#include "pull/request.h"

/* Where documents come from: a registry or an archive. The bytes that it gives have the descriptor's digest and size. */
struct nd_image_source {
        struct nd_error *(*document)(void *userdata, const struct nd_descriptor *descriptor, size_t ceiling, char **ret_bytes,
                                     size_t *ret_length);
        void *userdata;
};

/* What the daemon hears at the end. Owns what is in it. */
struct nd_image {
        struct nd_digest index, manifest, config;
        uint64_t config_size;
        struct nd_strings names;
        nd_layer_outcomes layers;
};
typedef nd_vector(struct nd_image) nd_images;

void nd_image_done(struct nd_image *image);
void nd_images_done(nd_images *images);

/* A document to start from, with its digest. */
struct nd_image_top {
        const char *bytes;
        size_t length;
        const char *media_type; /* nullptr = not known */
        struct nd_digest digest;
};

/* Brings the image for the request's platform: its documents as blobs/<hex>, its layers by way of the unpacker. */
[[nodiscard]] struct nd_error *nd_image_bring(struct nd_layers_place *place, const struct nd_request *request,
                                              const struct nd_image_source *source, const struct nd_image_top *top,
                                              struct nd_image *ret);

/* Lets the unpacker make all of it durable, and tells the daemon. */
[[nodiscard]] struct nd_error *nd_images_finish(const struct nd_layers_place *place, const nd_images *images);
