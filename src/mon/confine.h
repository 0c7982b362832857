/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - confines a monitor once its container is created
 *
 * The monitor reads the container's output as long as the container runs. So it drops everything
 * that only the creation needed: all capabilities, every system call except those of its loop, and
 * the filesystem except the log's directory. */
#pragma once

#include "base/error.h"
#include "mon/log.h"
#include "sys/call-filter.h"

/* Cannot be undone. A kernel without Landlock or without seccomp filters has one barrier less; any
 * other failure is an error. */
[[nodiscard]] struct nd_error *mon_confine(const struct mon_log *log);

/* For tests: the system calls that stay. */
extern const struct nd_call_filter mon_confine_filter;
