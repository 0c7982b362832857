/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "net/unix.h"
#include "sys/file.h"

/* The process that called listen() on the other end; 0 = it has exited. The worker processes of
 * a killed daemon keep its sockets open until the kernel has torn them down too. */
static pid_t listener_of(int fd) {
        socklen_t length = sizeof(struct ucred);
        struct ucred peer = {};

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
                return 0;
        return kill(peer.pid, 0) == 0 || errno != ESRCH ? peer.pid : 0;
}

/* Removes the socket of a dead daemon, never that of a daemon that still listens. A daemon that
 * hangs has a full backlog (EAGAIN): do not wait for it. */
static struct nd_error *clear_way(const struct sockaddr_un *address) {
        nd_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        pid_t other = 0;

        if (fd >= 0 && connect(fd, (const struct sockaddr *) address, sizeof *address) == 0)
                other = listener_of(fd);
        else if (fd >= 0 && errno == EAGAIN)
                return nd_error_new(ND_EXISTS, EAGAIN,
                                    "another process listens on '%s' and does not accept connections: stop it first",
                                    address->sun_path);
        if (other != 0)
                return nd_error_new(ND_EXISTS, 0, "another process (%d) listens on '%s': stop it first", (int) other,
                                    address->sun_path);
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", address->sun_path);
        return nullptr;
}

struct nd_error *cri_listener_make_directory(const char *path) {
        nd_autofree char *directory = nd_strdup(path);
        char *slash = strrchr(directory, '/');

        if (!slash || slash == directory)
                return nullptr;
        *slash = '\0';
        return nd_dir_make(AT_FDCWD, directory, 0700);
}

struct nd_error *cri_listener_unix(const char *path, int *ret_fd) {
        struct sockaddr_un address;
        nd_autoclose int fd = -EBADF;
        mode_t mask;
        int r;

        nd_try(nd_unix_address(path, &address));
        nd_try(cri_listener_make_directory(path));
        nd_try(clear_way(&address));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket for '%s'", path);
        mask = umask(0177);
        r = bind(fd, (struct sockaddr *) &address, sizeof address);
        (void) umask(mask);
        if (r < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "bind '%s'", path);
        if (listen(fd, SOMAXCONN) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen on '%s'", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *cri_listener_loopback(uint16_t port, int *ret_fd) {
        const struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        nd_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int yes = 1;

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
            bind(fd, (const struct sockaddr *) &address, sizeof address) < 0 || listen(fd, SOMAXCONN) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen on 127.0.0.1:%u", port);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}
