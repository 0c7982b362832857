/* SPDX-License-Identifier: Apache-2.0 */
/* unix.h - addresses of unix sockets in the file system; never abstract ones, which have no
 * permissions */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"

[[nodiscard]] struct nd_error *nd_unix_address(const char *path, struct sockaddr_un *ret);
