/* SPDX-License-Identifier: Apache-2.0 */
/* outside.h - starts a program with the node's network, and the host's files and processes
 *
 * A program of the user that must reach the node's network and that root of the node must not
 * reach: it has the node's user namespace, without which the kernel does not let an ordinary user
 * enter the network namespace, and no capability in it. It is not in the node's PID, mount and
 * cgroup namespaces, so that root of the node can neither see, trace or signal it nor open its
 * files. The user's IDs map to root's of the node, so the program is the user to files. */
#pragma once

#include "base/strings.h"

struct rootless_outside {
        const char *const *argv; /* ends with nullptr, as does environment */
        const char *const *environment;
        const char *directory; /* working directory */
        int node;              /* pidfd of the node's init */
        int output;            /* standard output and standard error */
};

/* The program is killed if the calling thread ends. */
[[nodiscard]] struct nd_error *rootless_outside_start(const struct rootless_outside *plan, int *ret_pidfd);
