/* SPDX-License-Identifier: Apache-2.0 */
/* import.h - images from an OCI archive: a tar (plain, gzip or zstd) of an OCI image layout */
#pragma once

#include "pull/image.h"

/* Reads the archive to its end and brings every image in it that suits the platform. */
[[nodiscard]] struct nd_error *nd_import(struct nd_layers_place *place, const struct nd_request *request, int archive_fd);
