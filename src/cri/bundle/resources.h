/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - what a container may use, and in which cgroup: from the CRI's words to OCI's */
#pragma once

#include "cri/core/config.h"
#include "cri/core/request.h"
#include "oci/spec.h"

/* parent is the pod's cgroup, "" = none. Limits of controllers that the node does not have and that the kubelet sends anyway (huge pages) are left
 * out; swap is the memory's limit where none is given, which means none. */
void cri_resources_describe(const struct cri_resource_request *request, const char *parent, struct nd_spec_resources *ret);

/* linux.cgroupsPath, as crun's cgroup manager wants it: "<slice>:nodens:<id>" or "<parent>/<id>". */
[[nodiscard]] struct nd_error *cri_resources_cgroup(const struct cri_config *config, const char *parent, const char *id,
                                                    char **ret);

/* Where crun makes that cgroup: below the mount, with a leading slash. For who must find a container that crun did not come to tell of. */
[[nodiscard]] struct nd_error *cri_resources_cgroup_path(const struct cri_config *config, const char *parent, const char *id,
                                                         char **ret);

/* The score that the kernel will take from us: without CAP_SYS_RESOURCE it is no lower than our own. */
int cri_resources_oom_score(int64_t wanted, uint64_t capabilities);
