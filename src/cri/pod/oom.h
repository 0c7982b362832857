/* SPDX-License-Identifier: Apache-2.0 */
/* oom.h - whether a container was killed for its memory
 *
 * The monitor reads the container's own counter of such kills. systemd removes a scope as soon as it is empty, and the counter with it; then the pod's
 * counter tells: what it has more than the containers of the pod were charged with is this one's. */
#pragma once

#include "cri/core/pod-table.h"
#include "cri/oci-runtime/monitor.h"

/* Charges the pod with the kills that it finds; whoever asks saves the pod's record. */
[[nodiscard]] bool cri_oom_killed(struct cri_container *container, const struct cri_monitor_end *end);

/* How many of a pod's kills are those of one container whose counter is gone. `charged` were laid to containers that have ended, `others` are the counters
 * of those that still live for us, -1 where a counter is gone as well: that one may have been killed in the same moment, its end still on the way to
 * us, so it keeps one. */
[[nodiscard]] int64_t cri_oom_share(int64_t all, int64_t charged, const int64_t *others, size_t count);
