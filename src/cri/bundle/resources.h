/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - converts a container's limits and cgroup from the CRI to OCI */
#pragma once

#include "cri/core/config.h"
#include "cri/core/request.h"
#include "oci/spec.h"

/* parent is the pod's cgroup, "" = none. Limits that the kubelet sends for controllers missing
 * on the node (huge pages) are left out. Without a swap limit, the memory limit is used, which
 * means no swap. */
void cri_resources_describe(const struct cri_resource_request *request, const char *parent, struct nd_spec_resources *ret);

/* linux.cgroupsPath in crun's format: "<slice>:<prefix>:<id>" or "<parent>/<id>". */
[[nodiscard]] struct nd_error *cri_resources_cgroup(const struct cri_config *config, const char *parent, const char *id,
                                                    char **ret);

/* Where crun creates that cgroup: below the mount, with a leading slash. */
[[nodiscard]] struct nd_error *cri_resources_cgroup_path(const char *given, char **ret);

/* The cgroup below the container's in which a container that may create cgroups starts. */
[[nodiscard]] char *cri_resources_leaf(const char *id);

/* Bounds for the cgroups that a container may create: kernel memory, and what a removal walks. */
void cri_resources_bound_cgroups(struct nd_spec_resources *resources);

/* The OOM score to set: the wanted one within the kernel's range, but without CAP_SYS_RESOURCE
 * not below our own. */
int cri_resources_oom_score(int64_t wanted, uint64_t capabilities);
