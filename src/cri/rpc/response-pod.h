/* SPDX-License-Identifier: Apache-2.0 */
/* response-pod.h - builds CRI messages of sandboxes and containers
 *
 * Messages are allocated in the response's arena and point into the pod table: they are valid until
 * it changes. Lists read no files. */
#pragma once

#include <cri.pb-c.h>

#include "cri/core/pod-table.h"
#include "cri/rpc/response.h"

struct nd_oci_store;

[[nodiscard]] Runtime__V1__PodSandbox *cri_response_sandbox(struct nd_arena *memory, const struct cri_sandbox *sandbox);
[[nodiscard]] Runtime__V1__PodSandboxStatus *cri_response_sandbox_status(struct nd_arena *memory,
                                                                         const struct cri_sandbox *sandbox);
[[nodiscard]] Runtime__V1__Container *cri_response_container(struct nd_arena *memory, const struct cri_container *container);
[[nodiscard]] Runtime__V1__ContainerStatus *cri_response_container_status(struct nd_arena *memory,
                                                                          const struct nd_oci_store *images,
                                                                          const struct cri_container *container);

[[nodiscard]] Runtime__V1__PodSandboxMetadata *cri_response_pod_metadata(struct nd_arena *memory,
                                                                         const struct cri_sandbox_request *request);
[[nodiscard]] Runtime__V1__ContainerMetadata *cri_response_container_metadata(struct nd_arena *memory,
                                                                              const struct cri_container_request *request);

/* True if labels contain everything that a selector requires; entries are of any map<string,
 * string>. */
#define cri_response_selects(labels, entries, n)                                                                              \
        ({                                                                                                                    \
                bool _all = true;                                                                                             \
                for (size_t _i = 0; _all && _i < (n); _i++)                                                                   \
                        _all = cri_pairs_have((labels), (entries)[_i]->key, (entries)[_i]->value);                            \
                _all;                                                                                                         \
        })
