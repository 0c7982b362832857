/* SPDX-License-Identifier: Apache-2.0 */
/* answer-stats.h - what pods and containers use, as the CRI's messages */
#pragma once

#include <cri.pb-c.h>

#include "cri/answer.h"
#include "cri/stats.h"

struct cri_config;

/* The objects remember what they had used when they were last asked about, for the rate. */
[[nodiscard]] Runtime__V1__ContainerStats *answer_container_stats(struct nd_arena *memory, const struct cri_config *config,
                                                                  struct container *container,
                                                                  const struct container_stats *stats);

/* containers: struct container_stats of an answer, by id; those of the pod are told with it. */
[[nodiscard]] Runtime__V1__PodSandboxStats *answer_sandbox_stats(struct nd_arena *memory, const struct cri_config *config,
                                                                 struct sandbox *sandbox, const struct sandbox_stats *stats,
                                                                 const struct nd_map *containers);
