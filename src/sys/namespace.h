/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.h - creates namespaces without processes in them, as descriptors */
#pragma once

#include <sys/stat.h>

#include "sys/userns.h"

/* A file below /proc/sys that belongs to one of the new namespaces. */
struct nd_namespace_sysctl {
        const char *path; /* "net/ipv4/ip_forward" */
        const char *value;
        bool optional; /* ignore if the kernel does not have it */
};

struct nd_namespace_plan {
        /* Owner of the others; nullptr = the caller's own user namespace. */
        const struct nd_userns_plan *user;
        int flags;            /* of CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS */
        const char *hostname; /* for CLONE_NEWUTS */
        const struct nd_namespace_sysctl *sysctls;
        size_t sysctl_count;
};

struct nd_namespace_set {
        int user, net, ipc, uts; /* -EBADF = not requested */
};

#define ND_NAMESPACE_SET_NONE ((struct nd_namespace_set) {-EBADF, -EBADF, -EBADF, -EBADF})
void nd_namespace_set_done(struct nd_namespace_set *namespaces);

/* Creates them, with the loopback interface up in a network namespace. Only the descriptors keep
 * them alive. Blocks for some milliseconds. */
[[nodiscard]] struct nd_error *nd_namespace_make(const struct nd_namespace_plan *plan, struct nd_namespace_set *ret);

/* Writes one sysctl of the caller's namespaces. ND_INVALID if the kernel refuses the value. */
[[nodiscard]] struct nd_error *nd_namespace_sysctl_write(const struct nd_namespace_sysctl *sysctl);

/* Bind-mounts a namespace's descriptor on a new file below dir_fd; ND_EXISTS if the file exists. */
[[nodiscard]] struct nd_error *nd_namespace_pin(int fd, int dir_fd, const char *path);
/* Whether a namespace is mounted there: a process killed while pinning or unpinning leaves an
 * ordinary file. */
[[nodiscard]] bool nd_namespace_is_pinned(const char *path);
/* Undoes nd_namespace_pin(). A missing pin is fine. */
[[nodiscard]] struct nd_error *nd_namespace_unpin(const char *path);
