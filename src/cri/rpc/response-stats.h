/* SPDX-License-Identifier: Apache-2.0 */
/* response-stats.h - builds CRI messages of resource usage */
#pragma once

#include <cri.pb-c.h>

#include "cri/rpc/response.h"
#include "cri/stats/stats.h"

struct cri_config;

/* The objects keep the usage of the previous request to compute the rate. */
[[nodiscard]] Runtime__V1__ContainerStats *cri_response_container_stats(struct nd_arena *memory,
                                                                        const struct cri_config *config,
                                                                        struct cri_container *container,
                                                                        const struct cri_container_stats *stats);

/* containers: maps IDs to the struct cri_container_stats of a result; those of the pod are included
 * in its message. */
[[nodiscard]] Runtime__V1__PodSandboxStats *cri_response_sandbox_stats(struct nd_arena *memory,
                                                                       const struct cri_config *config,
                                                                       struct cri_sandbox *sandbox,
                                                                       const struct cri_sandbox_stats *stats,
                                                                       const struct nd_map *containers);
