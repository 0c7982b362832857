/* SPDX-License-Identifier: Apache-2.0 */
/* eviction.h - selects the client without a token to drop when there are too many */
#pragma once

#include <stddef.h>

#include "cri/stream/tcp-owner.h"

/* Returns the index of the client to drop; owners are sorted by age, oldest first. The kubelet is
 * root: clients of other or unknown users are dropped first, then those of the owner (user and
 * cgroup) with the most connections, so that a client that connects often evicts its own, then the
 * oldest. count is at least 1. */
[[nodiscard]] size_t cri_stream_eviction_choose(const struct cri_tcp_owner *owners, size_t count);
