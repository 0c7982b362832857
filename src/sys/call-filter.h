/* SPDX-License-Identifier: Apache-2.0 */
/* call-filter.h - seccomp filters from a list of allowed system calls
 *
 * For programs that run once per container or volume: libseccomp would be their only library.
 * System calls that are not listed fail with EPERM, so a denied call is reported as an error
 * instead of killing the process; those of another architecture kill it. */
#pragma once

#include <linux/filter.h>
#include <stdint.h>

#include "base/error.h"

/* A condition on the lower half of one argument. A call may have several: one must hold. */
struct nd_call_condition {
        int number;
        /* Equal to the value, or none of its bits set. */
        enum { ND_CALL_EQUAL, ND_CALL_WITHOUT } condition;
        unsigned argument;
        uint32_t value;
};

struct nd_call_filter {
        const int *allowed;
        size_t allowed_count;
        const struct nd_call_condition *conditional;
        size_t conditional_count;
};

enum {
        ND_CALL_FILTER_MOST = 512, /* limit of instructions */
};

/* Writes the instructions and returns their number. */
[[nodiscard]] size_t nd_call_filter_build(const struct nd_call_filter *filter,
                                          struct sock_filter ret[static ND_CALL_FILTER_MOST]);

/* For the calling thread and those that it starts; cannot be undone. Needs no_new_privs or
 * CAP_SYS_ADMIN. A kernel without seccomp filters is not an error. */
[[nodiscard]] struct nd_error *nd_call_filter_load(const struct nd_call_filter *filter);
