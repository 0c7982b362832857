/* SPDX-License-Identifier: Apache-2.0 */
/* init.h - process 1 of a node: reaps processes and starts commands on request */
#pragma once

#include "base/error.h"

/* Serves the listener until the node is asked to stop. Returns when all its processes are gone, or
 * with an error when it cannot serve. */
[[nodiscard]] struct nd_error *rootless_init_serve(int listener_fd, bool has_cgroup);
