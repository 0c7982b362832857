/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - sockets that the daemon listens on */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* A unix socket for root only, with its directory. ND_EXISTS when somebody listens there; what a dead daemon has left goes away. */
[[nodiscard]] struct nd_error *cri_listener_unix(const char *path, int *ret_fd);

/* The loopback's address; port 0 = any. Every process on the host's network can connect. */
[[nodiscard]] struct nd_error *cri_listener_loopback(uint16_t port, int *ret_fd);

/* The directory that a path is in, and those above it. */
[[nodiscard]] struct nd_error *cri_listener_make_directory(const char *path);
