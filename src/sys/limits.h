/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - how many descriptors the daemon may have, without its children having as many
 *
 * systemd gives a service a soft limit of 1024 and a high hard one: a program that knows what it does raises the first to the second. What it starts must
 * not inherit that: some programs close all descriptors up to the limit, others break above 1024, and a pod's limits are to be the node's own. */
#pragma once

#include "base/error.h"

/* Raises the soft limit to the hard one, and remembers what it was. */
[[nodiscard]] struct nd_error *nd_limits_raise(void);

/* In a child, before it executes something: the soft limit as it was. */
void nd_limits_restore(void);
