/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - confines a monitor once its container is created
 *
 * The monitor reads the container's output as long as the container runs. So it drops everything
 * that only the creation needed: all capabilities, every system call except those of its loop, and
 * the filesystem except the log's directory. */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "base/error.h"
#include "mon/log.h"

/* Cannot be undone. A kernel without Landlock or without seccomp filters has one barrier less; any
 * other failure is an error. */
[[nodiscard]] struct nd_error *mon_confine(const struct mon_log *log);

enum {
        CONFINE_PROGRAM = 128, /* limit of instructions */
};

/* For tests: writes the seccomp filter and returns its length. */
[[nodiscard]] size_t mon_confine_program(struct sock_filter ret[static CONFINE_PROGRAM]);
