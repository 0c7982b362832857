/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.h - containers that hang in a FUSE filesystem of their own
 *
 * A FUSE server that waits for itself cannot be killed: the kernel waits for its answer, and its connection ends only with the process. Meanwhile the container
 * cannot be removed, and a sync() anywhere on the node may wait for it, too. The one way out is to abort the connection from outside. */
#pragma once

#include <stdint.h>

/* For workers, which are in a mount namespace of their own afterwards. Aborts the FUSE connections that the processes of a cgroup and below have mounted or serve,
 * but none that is mounted in the host's mount namespace: those are others', too. To be called when the processes were killed and do not end. */
void cri_fuse_abort(const char *cgroup);

/* For tests: the number of a connection in the text of /proc/<pid>/fdinfo/<fd>. Only what follows the lines that all files have counts: files of other kinds
 * show names there that a container chooses. */
[[nodiscard]] bool cri_fuse_parse_descriptor(const char *text, uint32_t *ret);
