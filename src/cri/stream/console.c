/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/stream/console.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "sys/calls.h"
#include "sys/file.h"
#include "sys/terminal.h"

struct cri_stream_console {
        int directory;
        char name[32];
        int path;   /* O_PATH of the socket file */
        int socket; /* the listener; once crun has connected, that connection */
        bool connected;
        sd_event_source *source;
        cri_stream_console_callback callback;
        void *userdata;
};

void cri_stream_console_free(struct cri_stream_console *console) {
        if (!console)
                return;
        sd_event_source_disable_unref(console->source);
        if (console->directory >= 0 && console->name[0])
                (void) nd_sys->unlinkat(console->directory, console->name, 0);
        nd_close_fd(&console->socket);
        nd_close_fd(&console->path);
        nd_close_fd(&console->directory);
        free(console);
}

static void console_done(struct cri_stream_console **console) {
        cri_stream_console_free(*console);
}

int cri_stream_console_socket(const struct cri_stream_console *console) {
        return console->path;
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata);

static int watch(struct cri_stream_console *console, sd_event *loop) {
        return sd_event_add_io(loop, &console->source, console->socket, EPOLLIN, on_socket, console);
}

/* crun connects before it has a terminal: the connection replaces the listener. */
static bool take_connection(struct cri_stream_console *console) {
        int fd = accept4(console->socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        sd_event *loop = sd_event_source_get_event(console->source);

        if (fd < 0)
                return false;
        console->source = sd_event_source_disable_unref(console->source);
        nd_close_fd(&console->socket);
        console->socket = fd;
        console->connected = true;
        return watch(console, loop) >= 0;
}

void cri_stream_console_look(struct cri_stream_console *console) {
        cri_stream_console_callback callback = console->callback;
        int fd;

        if (!console->source || (!console->connected && !take_connection(console)))
                return;
        fd = nd_terminal_receive(console->socket);
        if (fd == -EAGAIN)
                return;
        console->source = sd_event_source_disable_unref(console->source);
        if (fd >= 0)
                callback(fd, console->userdata);
}

static int on_socket([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                     void *userdata) {
        cri_stream_console_look(userdata);
        return 0;
}

struct nd_error *cri_stream_console_listen(sd_event *loop, const char *directory, cri_stream_console_callback callback,
                                           void *userdata, struct cri_stream_console **ret) {
        nd_cleanup(console_done) struct cri_stream_console *console = nd_new(struct cri_stream_console);
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        uint64_t number;

        console->directory = console->path = console->socket = -EBADF;
        console->callback = callback;
        console->userdata = userdata;
        nd_try(nd_dir_open(AT_FDCWD, directory, &console->directory));
        console->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (console->socket < 0 || getrandom(&number, sizeof number, 0) != sizeof number)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket");
        (void) snprintf(console->name, sizeof console->name, "exec-%016llx", (unsigned long long) number);
        /* The directory's path may be longer than sun_path. */
        (void) snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", console->directory, console->name);
        if (bind(console->socket, (struct sockaddr *) &address, sizeof address) < 0 || listen(console->socket, 1) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen on '%s/%s'", directory, console->name);
        console->path = openat(console->directory, console->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (console->path < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s/%s'", directory, console->name);
        if (watch(console, loop) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch a listening socket");
        *ret = nd_take_ptr(console);
        return nullptr;
}
