/* SPDX-License-Identifier: Apache-2.0 */
#include "net/unix.h"

#include <string.h>

struct nd_error *nd_unix_address(const char *path, struct sockaddr_un *ret) {
        size_t length = strlen(path);

        if (length == 0 || length >= sizeof ret->sun_path)
                return nd_error_new(ND_INVALID, 0, "socket path must have 1 to %zu bytes: '%s'", sizeof ret->sun_path - 1,
                                    path);
        *ret = (struct sockaddr_un) {.sun_family = AF_UNIX};
        memcpy(ret->sun_path, path, length + 1);
        return nullptr;
}
