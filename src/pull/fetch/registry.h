/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - pulls an image from a registry */
#pragma once

#include "pull/fetch/image.h"

/* Pulls the request's reference. The context has a fetcher. */
[[nodiscard]] struct nd_error *pull_registry_pull(struct pull_layers_context *context, const struct pull_request *request);
