/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.h - making namespaces that nobody lives in, as descriptors */
#pragma once

#include <sys/stat.h>

#include "sys/userns.h"

/* A file below /proc/sys that belongs to one of the new namespaces. */
struct nd_namespace_sysctl {
        const char *path; /* "net/ipv4/ip_forward" */
        const char *value;
        bool optional; /* a kernel without it is fine */
};

struct nd_namespace_plan {
        const struct nd_userns_plan *user; /* owner of the others; nullptr = the caller's own user namespace */
        int flags;                         /* of CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS */
        const char *hostname;              /* for CLONE_NEWUTS */
        const struct nd_namespace_sysctl *sysctls;
        size_t sysctl_count;
};

struct nd_namespace_set {
        int user, net, ipc, uts; /* -EBADF = not asked for */
};

#define ND_NAMESPACE_SET_NONE ((struct nd_namespace_set) {-EBADF, -EBADF, -EBADF, -EBADF})
void nd_namespace_set_done(struct nd_namespace_set *namespaces);

/* Makes them, with the loopback interface up where there is a network. The descriptors are all that keeps them alive. Blocks for some milliseconds. */
[[nodiscard]] struct nd_error *nd_namespace_make(const struct nd_namespace_plan *plan, struct nd_namespace_set *ret);

/* Writes one sysctl of the namespaces that the caller is in. ND_INVALID where the kernel refuses the value. */
[[nodiscard]] struct nd_error *nd_namespace_sysctl_write(const struct nd_namespace_sysctl *sysctl);

/* Mounts a namespace's descriptor at a file below dir_fd, which is made; ND_EXISTS when there is one already. */
[[nodiscard]] struct nd_error *nd_namespace_pin(int fd, int dir_fd, const char *path);
/* Whether a namespace is mounted there: who was killed while pinning or unpinning leaves an ordinary file. */
[[nodiscard]] bool nd_namespace_is_pinned(const char *path);
/* Undoes that. Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *nd_namespace_unpin(const char *path);
