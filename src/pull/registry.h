/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - an image from a registry: which documents to ask it for */
#pragma once

#include "pull/image.h"

/* Pulls the request's reference. The place has a fetcher. */
[[nodiscard]] struct nd_error *nd_registry_pull(struct nd_layers_place *place, const struct nd_request *request);
