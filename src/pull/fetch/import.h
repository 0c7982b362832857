/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - imports images from an OCI archive: a tar (plain, gzip or zstd) of an OCI image
 * layout */
#pragma once

#include "pull/fetch/image.h"

/* Reads the whole archive and imports every image for the platform. */
[[nodiscard]] struct nd_error *pull_import(struct pull_layers_context *context, const struct pull_request *request,
                                           int archive_fd);
