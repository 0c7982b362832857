/* SPDX-License-Identifier: Apache-2.0 */
/* joined-namespaces.h - opens the namespaces that a container joins, and checks that its process is
 * in them
 *
 * A pid is valid only as long as its process lives. We open the pid namespace of another container
 * while its pidfd proves that the pid is still valid, and pass the descriptor's path to the OCI
 * runtime. The namespaces that the process has joined are compared by inode before the container
 * may start. */
#pragma once

#include "cri/bundle/bundle.h"

/* Opens the pid namespace of a container's first process. what names the container in the error:
 * ND_PRECONDITION if it is not running. */
[[nodiscard]] struct nd_error *cri_joined_namespaces_open(const struct cri_container *holder, const char *what, int *ret_fd);

/* Compares the namespaces of a created container's process with the plan's; pid_namespace is from
 * cri_joined_namespaces_open(), -EBADF if none is joined. Succeeds if the process has exited. */
[[nodiscard]] struct nd_error *cri_joined_namespaces_check(pid_t pid, const struct cri_bundle_plan *plan, int pid_namespace);
