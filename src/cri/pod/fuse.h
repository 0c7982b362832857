/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - aborts FUSE connections of containers that hang in a filesystem of their own
 *
 * A FUSE server that waits for itself cannot be killed: the kernel waits for its reply, and its
 * connection ends only with the process. Meanwhile the container cannot be removed, and a sync()
 * anywhere on the node may block on it, too. The only way out is to abort the connection from
 * outside. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Call it in a worker, which is in a mount namespace of its own afterwards. Aborts the FUSE
 * connections that the processes of a cgroup and its descendants have mounted or serve, except
 * those mounted in the host's mount namespace, which others may use. Call it when the processes
 * were killed and do not exit. */
void cri_fuse_abort(const char *cgroup);

/* For tests: parses the connection number in the text of /proc/<pid>/fdinfo/<fd>. Only the lines
 * after those that all files have count: files of other types show names there that a container
 * chooses. */
[[nodiscard]] bool cri_fuse_parse_descriptor(const char *text, uint32_t *ret);

/* The same for a line of a mount table: the connection of a FUSE mount and, if ret_path is not
 * nullptr, its path, which the caller frees. */
[[nodiscard]] bool cri_fuse_parse_mount(const char *line, size_t length, uint32_t *ret_connection, char **ret_path);
