/* SPDX-License-Identifier: Apache-2.0 */
/* mount.h - opens the volume and mounts the FUSE filesystem */
#pragma once

#include "bridge/state.h"

/* Opens the directory or file to bridge, through a mount of our own. "" is dir_fd itself. */
[[nodiscard]] struct nd_error *bridge_mount_open(struct bridge_state *state, int dir_fd, const char *source);

/* Makes the filesystem; its detached mount is returned. @userns: a descriptor of the pod's user
 * namespace, which owns it, or -EBADF for one of our own. */
[[nodiscard]] struct nd_error *bridge_mount_make(struct bridge_state *state, int userns, int *ret_tree);
