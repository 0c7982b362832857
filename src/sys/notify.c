/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/notify.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "base/text.h"

/* sd_notify(3) waits for a manager that does not read. */
static void send_now(const char *message) {
        const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe): one thread */
        size_t length = path ? strlen(path) : 0;
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        nd_autoclose int fd = -EBADF;

        if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
                return;
        memcpy(address.sun_path, path, length);
        if (path[0] == '@')
                address.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                (void) !sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *) &address,
                               (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length));
}

int nd_notify_send(const char *assignments, const char *status) {
        nd_autotext struct nd_text line = ND_TEXT(ND_NOTIFY_BYTES);

        nd_text_add_printable(&line, status, strlen(status));
        return sd_notifyf(false, "%s\nSTATUS=%s", assignments, nd_text_get(&line));
}

void nd_notify_status(const char *status) {
        nd_autotext struct nd_text message = ND_TEXT(ND_NOTIFY_BYTES + strlen("STATUS="));

        nd_text_add(&message, "STATUS=");
        nd_text_add_printable(&message, status, strlen(status));
        send_now(nd_text_get(&message));
}

void nd_notify_ready(const char *status) {
        (void) !nd_notify_send("READY=1", status);
}

void nd_notify_failure(const struct nd_error *error) {
        nd_autofree char *status = nd_format("cannot start: %s", nd_error_text(error));

        nd_notify_status(status);
}

void nd_notify_stopping(void) {
        (void) !nd_notify_send("STOPPING=1", "stopping");
}
