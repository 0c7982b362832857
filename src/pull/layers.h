/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - all layers of one image: fetched, handed to the unpacker, put into place by it */
#pragma once

#include "oci/config.h"
#include "oci/manifest.h"
#include "pull/blob.h"
#include "pull/events.h"
#include "pull/fetch.h"
#include "pull/unpacker.h"

/* Where things are, for the length of a pull. All borrowed. */
struct nd_layers_place {
        int blobs_fd;   /* of this pull: documents, and what import.c took from an archive */
        int partial_fd; /* of all pulls */
        struct nd_unpacker *unpacker;
        const struct nd_events *events;
        struct nd_fetcher *fetcher; /* nullptr: the blobs are there already */
        const char *repository;
        unsigned parallel;
        uint64_t total_bytes;
        uint32_t next_id; /* of a job; goes on from image to image */
};

/* One layer when all is done. */
struct nd_layer_outcome {
        struct nd_digest diff_id;
        struct nd_digest chain;
        uint64_t size, inodes;
        bool is_new; /* of this pull, not in the store */
};
typedef nd_vector(struct nd_layer_outcome) nd_layer_outcomes;

/* Has every layer unpacked that is not there yet. */
[[nodiscard]] struct nd_error *nd_layers_run(struct nd_layers_place *place, const struct nd_manifest *manifest,
                                             const struct nd_image_config *config, nd_layer_outcomes *ret);
