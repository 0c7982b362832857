/* SPDX-License-Identifier: Apache-2.0 */
/* response-stats.h - what pods and containers use, as the CRI's messages */
#pragma once

#include <cri.pb-c.h>

#include "cri/rpc/response.h"
#include "cri/stats/stats.h"

struct cri_config;

/* The objects remember what they had used when they were last asked about, for the rate. */
[[nodiscard]] Runtime__V1__ContainerStats *cri_response_container_stats(struct nd_arena *memory,
                                                                        const struct cri_config *config,
                                                                        struct cri_container *container,
                                                                        const struct cri_container_stats *stats);

/* containers: struct cri_container_stats of an answer, by id; those of the pod are told with it. */
[[nodiscard]] Runtime__V1__PodSandboxStats *cri_response_sandbox_stats(struct nd_arena *memory,
                                                                       const struct cri_config *config,
                                                                       struct cri_sandbox *sandbox,
                                                                       const struct cri_sandbox_stats *stats,
                                                                       const struct nd_map *containers);
