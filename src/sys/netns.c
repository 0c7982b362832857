/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/netns.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "sys/calls.h"

static int make(int family, int type) {
        int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        return fd < 0 ? -errno : fd;
}

struct nd_error *nd_netns_socket(const char *path, int family, int type, int *ret) {
        nd_autoclose int home = -EBADF, there = -EBADF;
        int fd;

        if (path) {
                home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
                there = open(path, O_RDONLY | O_CLOEXEC);
                if (home < 0 || there < 0 || nd_sys->setns(there, CLONE_NEWNET) < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "enter network namespace '%s'", path);
        }
        fd = make(family, type);
        if (path && nd_sys->setns(home, CLONE_NEWNET) < 0)
                abort();
        if (fd < 0)
                return nd_error_new(nd_error_code_of(-fd), -fd, "create socket");
        *ret = fd;
        return nullptr;
}
