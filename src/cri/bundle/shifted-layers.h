/* SPDX-License-Identifier: Apache-2.0 */
/* shifted-layers.h - copies of an image's layers for the user namespace of a pod
 *
 * A rootless node cannot idmap filesystems that the host mounted. Where the image store is on one,
 * each layer is copied once for each block of IDs, with its owners shifted, and the copies take the
 * layers' place in the overlay. They are beside the layer, layers/<chain>/shifted-<uid>-<gid>, so
 * they are removed with it; the store counts them and removes surplus ones (oci/store.h).
 * On a filesystem that shares blocks (btrfs, xfs) a copy takes hardly any space. */
#pragma once

#include "oci/digest.h"
#include "sys/tree-copy.h"

struct cri_shifted_layers {
        const char *layers;             /* the store's directory of layers, absolute */
        const struct nd_digest *chains; /* lowest first */
        size_t count;
        struct nd_tree_shift shift;
};

/* For workers: makes the copies that are missing. Another worker that makes the same one is waited
 * for. What a killed worker left is removed; finished copies are kept, so that a second attempt
 * continues. */
[[nodiscard]] struct nd_error *cri_shifted_layers_make(const struct cri_shifted_layers *plan);

/* The directory of a copy; free it. */
[[nodiscard]] char *cri_shifted_layers_path(const struct cri_shifted_layers *plan, size_t layer);
