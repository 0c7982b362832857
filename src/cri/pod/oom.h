/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - determines whether a container was killed by the OOM killer
 *
 * The monitor reads the OOM kill counter of the container's cgroup. systemd removes a scope as soon
 * as it is empty, and the counter with it. Then the pod's counter is used: its excess over the
 * kills attributed to the pod's containers belongs to this one. */
#pragma once

#include "cri/core/pod-table.h"
#include "cri/oci-runtime/monitor.h"

/* Adds the kills to those attributed to the pod's containers; the caller saves the pod's record. */
[[nodiscard]] bool cri_oom_killed(struct cri_container *container, const struct cri_monitor_end *end);

/* Returns the share of a pod's kills that belongs to one container whose counter is gone. `charged`
 * were attributed to exited containers; `others` are the counters of containers that still live for
 * us, -1 if a counter is gone as well: that container may have been killed at the same moment, its
 * exit not reported yet, so one kill is reserved for it. */
[[nodiscard]] int64_t cri_oom_share(int64_t all, int64_t charged, const int64_t *others, size_t count);
