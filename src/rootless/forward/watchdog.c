/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/forward/watchdog.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "base/memory.h"

void rootless_watchdog_open(struct rootless_watchdog *watchdog) {
        const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): one thread */
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        nd_autoclose int fd = -EBADF;
        uint64_t period_us;
        size_t length;

        if (sd_watchdog_enabled(false, &period_us) <= 0 || !path)
                return;
        length = strlen(path);
        if (length < 2 || length >= sizeof address.sun_path)
                return;
        memcpy(address.sun_path, path, length);
        if (path[0] == '@')
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 ||
            connect(fd, (struct sockaddr *) &address, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length)) < 0)
                return;
        watchdog->fd = nd_take_fd(fd);
        watchdog->every_us = period_us / 3;
}

void rootless_watchdog_done(struct rootless_watchdog *watchdog) {
        nd_close_fd(&watchdog->fd);
}

void rootless_watchdog_feed(struct rootless_watchdog *watchdog, uint64_t now_us) {
        if (watchdog->fd < 0 || now_us - watchdog->fed_us < watchdog->every_us)
                return;
        watchdog->fed_us = now_us;
        (void) !send(watchdog->fd, "WATCHDOG=1", strlen("WATCHDOG=1"), MSG_DONTWAIT | MSG_NOSIGNAL);
}
