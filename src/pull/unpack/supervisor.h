/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - nodens-unpack's supervisor process: starts workers and computes chain IDs */
#pragma once

#include "pull/protocol/events.h"

/* Never returns: the calling process, which must be PID 1 of its PID namespace, becomes the
 * supervisor. @unpack_fd is the directory for this pull's trees, @layers_fd the store's layers. Its
 * exit status is 0 after everything was synced. */
[[noreturn]] void pull_supervisor_main(int channel_fd, int unpack_fd, int layers_fd, int userns_fd,
                                       const struct pull_events *events);
