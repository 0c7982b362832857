/* SPDX-License-Identifier: Apache-2.0 */
/* netns.h - sockets in another network namespace
 *
 * A socket belongs for life to the network namespace it was created in, so a short setns() is
 * enough to use that network, and no process is needed. The caller must be single-threaded, as all
 * our programs are. */
#pragma once

#include "base/error.h"

/* Creates a socket in the network namespace at path; nullptr = ours. Close-on-exec and
 * non-blocking. A process that cannot return to its own namespace aborts: all its later work would
 * be in the pod's network. */
[[nodiscard]] struct nd_error *nd_netns_socket(const char *path, int family, int type, int *ret);
