/* SPDX-License-Identifier: Apache-2.0 */
/* netns.h - sockets of a network that is not ours
 *
 * A socket belongs for life to the network it was made in, so whoever wants to talk there need not be there: a visit that lasts three system calls is
 * enough, and no process is started for it. The caller must have one thread only, as all of ours have. */
#pragma once

#include "base/error.h"

/* A socket of the network at path; nullptr = ours. Closed on exec, and it does not block. A process that cannot come home again ends: it would do
 * everything that follows in the pod's network. */
[[nodiscard]] struct nd_error *nd_netns_socket(const char *path, int family, int type, int *ret);
