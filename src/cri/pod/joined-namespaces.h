/* SPDX-License-Identifier: Apache-2.0 */
/* joined-namespaces.h - the namespaces that a container joins, and whether its process is in them
 *
 * A process is a number only as long as it lives. The pid namespace of another container is opened by us, while its pidfd says that the number is still its own, and the
 * OCI runtime gets the descriptor's path; what it has joined in the end is compared by inode before the container may start. */
#pragma once

#include "cri/bundle/bundle.h"

/* The pid namespace of a container's first process. what names the container in the error: ND_PRECONDITION when it does not run. */
[[nodiscard]] struct nd_error *cri_joined_namespaces_open(const struct cri_container *holder, const char *what, int *ret_fd);

/* Compares the namespaces of a created container's process with the plan's; pid_namespace is of cri_joined_namespaces_open(), -EBADF where none is joined. A process that has ended has none. */
[[nodiscard]] struct nd_error *cri_joined_namespaces_check(pid_t pid, const struct cri_bundle_plan *plan, int pid_namespace);
