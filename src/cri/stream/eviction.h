/* SPDX-License-Identifier: Apache-2.0 */
/* eviction.h - which client without a token is dropped when there are too many */
#pragma once

#include <stddef.h>

#include "net/tcp-owner.h"

/* The one of these, the oldest first, that is dropped for the others. The kubelet is root: clients of other users, or of unknown ones, go first; then the owner (user and cgroup) who has the
 * most, so that connecting often drops one's own; then the oldest. count is at least 1. */
[[nodiscard]] size_t cri_stream_eviction_choose(const struct nd_tcp_owner *owners, size_t count);
