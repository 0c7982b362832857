/* SPDX-License-Identifier: Apache-2.0 */
/* hostusers.h - what the API server demands of a pod that sets hostUsers, or that needs it set
 *
 *      with hostUsers: false   no hostNetwork (but for a feature gate), hostPID, hostIPC or raw block volumes
 *      with any other value    no procMount: Unmasked
 *      on Windows              neither hostUsers nor procMount at all
 *
 * The API server says so itself, with these words. We ask first where we would set hostUsers for somebody. */
#pragma once

#include "kube/field.h"
#include "kube/pod.h"

struct nd_hostusers_options {
        bool host_network;        /* the gate UserNamespacesHostNetworkSupport is on */
        const struct nd_pod *old; /* on an update: what was allowed once stays allowed; nullptr on creation */
};

/* Paths are those below a pod: "spec.hostNetwork". Two of them are spelled as the API server spells them: "spec.HostPID". */
void nd_hostusers_validate(const struct nd_pod *pod, const struct nd_hostusers_options *options,
                           struct nd_field_errors *errors);

/* Whether hostUsers: false could be set on this pod: "" or the field that stands against it. */
const char *nd_hostusers_obstacle(const struct nd_pod *pod, bool host_network);
