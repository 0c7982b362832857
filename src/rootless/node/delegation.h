/* SPDX-License-Identifier: Apache-2.0 */
/* delegation.h - whether a cgroup gives pods their resource limits */
#pragma once

#include "base/error.h"

/* What an administrator does about missing controllers. */
#define DELEGATION_REMEDY                                                                                                      \
        "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' " \
        ">/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again"

/* Controllers that pods need for limits and that the cgroup does not have; "" = none. */
[[nodiscard]] char *rootless_delegation_missing(const char *cgroup);

/* An error with the remedy, unless the cgroup has all of them. nullptr: no cgroup is delegated. */
[[nodiscard]] struct nd_error *rootless_delegation_require(const char *cgroup);

/* The same for the cgroup of the user's service manager, whose units have its controllers. Nothing
 * is required if there is none: starting a unit fails then. */
[[nodiscard]] struct nd_error *rootless_delegation_require_manager(void);
