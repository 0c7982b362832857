/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - downloads all layers of one image and has nodens-unpack unpack them */
#pragma once

#include "oci/config.h"
#include "oci/manifest.h"
#include "pull/fetch/blob.h"
#include "pull/fetch/fetcher.h"
#include "pull/fetch/unpack-client.h"
#include "pull/protocol/events.h"

/* The objects that a pull works with. All borrowed. */
struct pull_layers_context {
        int blobs_fd;   /* of this pull: documents, and blobs from an archive */
        int partial_fd; /* shared by all pulls */
        struct pull_unpack_client *unpacker;
        const struct pull_events *events;
        struct pull_fetcher *fetcher; /* nullptr: the blobs are already there */
        const char *repository;
        unsigned parallel;
        uint64_t total_bytes;
        uint32_t next_id; /* of a job; counts across images */
};

/* Result for one layer. */
struct pull_layer_result {
        struct nd_digest diff_id;
        struct nd_digest chain;
        uint64_t size, inodes;
        bool is_new; /* from this pull, not yet in the store */
};

struct pull_layer_results { /* see base/vector.h */
        struct pull_layer_result *items;
        size_t count, capacity;
};

/* Unpacks every layer that does not exist yet. */
[[nodiscard]] struct nd_error *pull_layers_run(struct pull_layers_context *context, const struct nd_manifest *manifest,
                                               const struct nd_oci_config *config, struct pull_layer_results *ret);
