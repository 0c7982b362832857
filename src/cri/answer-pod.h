/* SPDX-License-Identifier: Apache-2.0 */
/* answer-pod.h - sandboxes and containers as the CRI's messages
 *
 * Messages live in the answer's memory and point into the pod table: they are good until something in it changes. Lists read no file. */
#pragma once

#include <cri.pb-c.h>

#include "cri/answer.h"
#include "cri/pods.h"

struct nd_image_store;

[[nodiscard]] Runtime__V1__PodSandbox *answer_sandbox(struct nd_arena *memory, const struct sandbox *sandbox);
[[nodiscard]] Runtime__V1__PodSandboxStatus *answer_sandbox_status(struct nd_arena *memory, const struct sandbox *sandbox);
[[nodiscard]] Runtime__V1__Container *answer_container(struct nd_arena *memory, const struct container *container);
[[nodiscard]] Runtime__V1__ContainerStatus *answer_container_status(struct nd_arena *memory,
                                                                    const struct nd_image_store *images,
                                                                    const struct container *container);

[[nodiscard]] Runtime__V1__PodSandboxMetadata *answer_pod_metadata(struct nd_arena *memory,
                                                                   const struct sandbox_request *request);
[[nodiscard]] Runtime__V1__ContainerMetadata *answer_container_metadata(struct nd_arena *memory,
                                                                        const struct container_request *request);

/* Whether labels hold all that a selector asks for: entries are of any map<string, string>. */
#define answer_selects(labels, entries, n)                                                                                    \
        ({                                                                                                                    \
                bool _all = true;                                                                                             \
                for (size_t _i = 0; _all && _i < (n); _i++)                                                                   \
                        _all = pairs_have((labels), (entries)[_i]->key, (entries)[_i]->value);                                \
                _all;                                                                                                         \
        })
