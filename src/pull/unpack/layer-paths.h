/* SPDX-License-Identifier: Apache-2.0 */
/* layer-paths.h - finds layers for the supervisor: those of this pull, and those in the store */
#pragma once

#include "oci/layer.h"

/* Returns the directory of a chain; nullptr when there is none. */
[[nodiscard]] struct nd_error *pull_layer_find(const struct nd_digest *chain, struct nd_layer *ret, char **ret_path);

/* Returns the trees of a layer (@top; unset = none) and of all layers below it, topmost first, by
 * the parents in their layer files. */
[[nodiscard]] struct nd_error *pull_layer_tree_paths(const struct nd_digest *top, char ***ret, size_t *ret_count);
void pull_layer_tree_paths_free(char **paths, size_t count);
