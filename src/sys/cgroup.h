/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - which cgroup hierarchy the machine has, and where we are in it */
#pragma once

#include "base/error.h"

enum nd_cgroup_layout {
        ND_CGROUP_NONE,   /* nothing is mounted at /sys/fs/cgroup */
        ND_CGROUP_LEGACY, /* v1, or v1 with a v2 tree beside it ("hybrid") */
        ND_CGROUP_UNIFIED,
};

struct nd_cgroup {
        enum nd_cgroup_layout layout;
        char *own;         /* our path below the mount, "/" for the root; nullptr unless unified */
        char *controllers; /* of the root of what we see, separated by blanks; nullptr unless unified */
        char *delegated;   /* controllers of our own cgroup */
        bool writable;     /* we may make children in our own cgroup */
};

void nd_cgroup_done(struct nd_cgroup *cgroup);
[[nodiscard]] struct nd_error *nd_cgroup_discover(struct nd_cgroup *ret);

/* The v2 path in the text of /proc/<pid>/cgroup ("0::/a/b"), nullptr when there is none. */
[[nodiscard]] char *nd_cgroup_path_of(const char *text);

/* Whether a list separated by blanks has a word. */
[[nodiscard]] bool nd_cgroup_has(const char *controllers, const char *name);
