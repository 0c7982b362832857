/* SPDX-License-Identifier: Apache-2.0 */
/* request-decode.h - the CRI's messages as requests of ours
 *
 * Everything is bounded, and what the CRI forbids is refused here, before anything is made: so that a record which was accepted once is
 * accepted when it is read again. What needs more than the message (other pods, the image, the kernel) is checked by whoever needs it. */
#pragma once

#include "cri/core/request.h"

struct cri_pod_table;

enum {
        REQUEST_LIST = 10000,       /* entries of one list or map */
        REQUEST_TEXT = 1 << 20,     /* bytes of one annotation, variable or argument */
        REQUEST_NAME = 1024,        /* bytes of a name, id or handler */
        REQUEST_PATH = 4095,        /* bytes of a path */
        REQUEST_PAIR_VALUE = 65536, /* bytes of a sysctl's or cgroup file's value */
};

/* RunPodSandboxRequest */
[[nodiscard]] struct nd_error *cri_request_decode_sandbox(const char *bytes, size_t length, struct cri_sandbox_request *ret);

/* CreateContainerRequest; the sandbox's id is the caller's to free. */
[[nodiscard]] struct nd_error *cri_request_decode_container(const char *bytes, size_t length, char **ret_sandbox_id,
                                                            struct cri_container_request *ret);

/* UpdateContainerResourcesRequest; the container's id is the caller's to free. */
[[nodiscard]] struct nd_error *cri_request_decode_update(const char *bytes, size_t length, char **ret_container_id,
                                                         struct cri_resource_request *ret);

/* A request beside what is there: its attempt is a new one, and its IDs belong to no other pod that may run. */
[[nodiscard]] struct nd_error *cri_request_check_sandbox(const struct cri_pod_table *pods,
                                                         const struct cri_sandbox_request *request);

/* A container's users are its sandbox's, whatever its own message says. */
[[nodiscard]] struct nd_error *cri_request_check_container(const struct cri_sandbox_request *sandbox,
                                                           const struct cri_container_request *request);
