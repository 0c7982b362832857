/* SPDX-License-Identifier: Apache-2.0 */
/* request-decode.h - decodes CRI messages into requests
 *
 * All sizes are bounded, and requests that the CRI forbids are refused here, before anything is
 * set up: so a record that was accepted once is accepted when it is loaded again. Checks that
 * need more than the message (other pods, the image, the kernel) belong to the modules that use
 * the field. */
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

/* CreateContainerRequest. The caller frees the sandbox id. */
[[nodiscard]] struct nd_error *cri_request_decode_container(const char *bytes, size_t length, char **ret_sandbox_id,
                                                            struct cri_container_request *ret);

/* UpdateContainerResourcesRequest. The caller frees the container id. */
[[nodiscard]] struct nd_error *cri_request_decode_update(const char *bytes, size_t length, char **ret_container_id,
                                                         struct cri_resource_request *ret);

/* Checks a request against existing pods: the attempt must be new, and its IDs must not be in
 * use by another pod that may run. */
[[nodiscard]] struct nd_error *cri_request_check_sandbox(const struct cri_pod_table *pods,
                                                         const struct cri_sandbox_request *request);

/* Checks a container against its sandbox: the ID mapping must be the same, and a privileged
 * container needs a privileged sandbox. */
[[nodiscard]] struct nd_error *cri_request_check_container(const struct cri_sandbox_request *sandbox,
                                                           const struct cri_container_request *request);
