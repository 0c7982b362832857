/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - facts about any process, from /proc */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Returns the start time of a process, any of ours or of others, in clock ticks since boot. */
[[nodiscard]] struct nd_error *nd_process_start_time(pid_t pid, uint64_t *ret);
