/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - the forwarder's cell: no capability, no new privileges, and only the system calls that moving bytes takes */
#pragma once

#include "base/error.h"

[[nodiscard]] struct nd_error *nd_confine(void);

/* For every process of the node, by the holder and by what enters the node later: keeps the user's kernel keyrings out of reach. Takes CAP_SYS_ADMIN over the
 * node's user namespace. */
[[nodiscard]] struct nd_error *nd_confine_node(void);
