/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h - nodens-unpack's own process: it starts workers, and says which layer a tree is */
#pragma once

#include "pull/events.h"

/* Never returns: the calling process, which must be the first of a PID namespace, becomes the keeper. @unpack_fd is the directory that
 * this pull's trees are made in, @layers_fd the store's layers. Its exit code is 0 after everything was synced. */
[[noreturn]] void nd_keeper_main(int channel_fd, int unpack_fd, int layers_fd, int userns_fd, const struct nd_events *events);
