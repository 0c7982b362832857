/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - the daemon's listening sockets */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Listens on a unix socket that only root can use; makes its directory. ND_EXISTS if another
 * process listens there; removes the socket of a dead daemon. */
[[nodiscard]] struct nd_error *cri_listener_unix(const char *path, int *ret_fd);

/* Listens on 127.0.0.1; port 0 = any. Every process in the host's network namespace can connect. */
[[nodiscard]] struct nd_error *cri_listener_loopback(uint16_t port, int *ret_fd);

/* Makes the directory that holds path, with its parents. */
[[nodiscard]] struct nd_error *cri_listener_make_directory(const char *path);
