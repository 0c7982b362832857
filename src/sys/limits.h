/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - the daemon's limit of open files, not inherited by its children
 *
 * systemd gives a service a soft limit of 1024 and a high hard one; a program that does not use
 * select() raises the first to the second. Children must not inherit that: some programs close all
 * descriptors up to the limit, others break above 1024, and a pod's limits should be the node's
 * own. */
#pragma once

#include "base/error.h"

/* Raises the soft limit to the hard one, and saves the old value. */
[[nodiscard]] struct nd_error *nd_limits_raise(void);

/* In a child, before exec: restores the soft limit. */
void nd_limits_restore(void);
