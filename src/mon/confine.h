/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - what a monitor may still do once its container is there
 *
 * It reads what the container writes, for as long as the container lives. So it gives up everything that the creation needed: all capabilities, every system call
 * but those of its loop, and the filesystem but for the log's directory. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "base/error.h"
#include "mon/log.h"

/* There is no way back. A kernel without Landlock, or without filters of system calls, has one wall less; anything else that fails is an error. */
[[nodiscard]] struct nd_error *mon_confine(const struct mon_log *log);

enum {
        CONFINE_PROGRAM = 128, /* instructions at most */
};

/* For tests: the filter of system calls; returns its length. */
[[nodiscard]] size_t mon_confine_program(struct sock_filter ret[static CONFINE_PROGRAM]);
