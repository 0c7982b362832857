/* SPDX-License-Identifier: Apache-2.0 */
/* hostusers.h - the API server's validation of pods that set hostUsers, or that need it set
 *
 *      with hostUsers: false   no hostNetwork (unless a feature gate is on), hostPID, hostIPC or
 *                              raw block volumes
 *      with any other value    no procMount: Unmasked
 *      on Windows              neither hostUsers nor procMount
 *
 * The API server validates the same, with the same texts. We check first if we would set hostUsers
 * on behalf of a user. */
#pragma once

#include "kube/field.h"
#include "kube/pod.h"

struct nd_hostusers_options {
        bool host_network; /* the gate UserNamespacesHostNetworkSupport is on */
        /* on an update: what was allowed before stays allowed; nullptr on creation */
        const struct nd_pod *old;
};

/* Paths are relative to a pod: "spec.hostNetwork". Two are spelled as in the API server:
 * "spec.HostPID". */
void nd_hostusers_validate(const struct nd_pod *pod, const struct nd_hostusers_options *options,
                           struct nd_field_errors *errors);

/* Returns "" if hostUsers: false can be set on this pod, or else the field that prevents it. */
const char *nd_hostusers_obstacle(const struct nd_pod *pod, bool host_network);
