/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - nodens-unpack's supervisor process: it starts workers, and computes which layer a tree is */
#pragma once

#include "pull/protocol/events.h"

/* Never returns: the calling process, which must be the first of a PID namespace, becomes the supervisor. @unpack_fd is the directory that
 * this pull's trees are made in, @layers_fd the store's layers. Its exit code is 0 after everything was synced. */
[[noreturn]] void pull_supervisor_main(int channel_fd, int unpack_fd, int layers_fd, int userns_fd,
                                       const struct pull_events *events);
