/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - see attach.h
 *
 * Theory of operation
 *   The container's monitor owns its streams and outlives the daemon. So each client gets its own
 *   connection to the monitor, over which it passes one end of a socket pair per stream
 *   (mon/attach.h); nothing from an earlier daemon is needed. Data goes through these sockets,
 *   whose buffers are the only ones. The connection to the monitor reports that the container
 *   exited, or that the client was too slow.
 * Owns       the connection; cri_stdio owns our ends of the sockets. */
#include "cri/stream/attach.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "cri/core/paths.h"
#include "cri/oci-runtime/monitor.h"
#include "cri/stream/stdio.h"
#include "net/monitor-wire.h"
#include "sys/fd-passing.h"

enum {
        BUFFER = 1 << 20, /* of a socket: output not read yet */
};

static constexpr uint64_t answer_timeout_us = 10 * ND_SECOND_US;

struct work {
        struct cri_stdio *stdio;
        int fd;
        sd_event_source *source;
        sd_event_source *patience; /* until the monitor has replied */
};

static void cancel(void *userdata) {
        struct work *work = userdata;

        sd_event_source_disable_unref(work->source);
        sd_event_source_disable_unref(work->patience);
        nd_close_fd(&work->fd);
        free(work);
}

static void resize(void *userdata, const struct winsize *window) {
        const struct work *work = userdata;
        char bytes[ND_MONITOR_MESSAGE];
        size_t length;

        if (!window)
                return;
        length = nd_monitor_message_write(
                &(struct nd_monitor_message) {.letter = ND_MONITOR_RESIZE, .rows = window->ws_row, .columns = window->ws_col},
                bytes);
        (void) send(work->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- messages from the monitor; they may free the work ---- */

static void end(struct work *work, struct nd_error *error) {
        work->source = sd_event_source_disable_unref(work->source);
        work->patience = sd_event_source_disable_unref(work->patience);
        cri_stdio_end(work->stdio, error, 0);
}

static void take_message(struct work *work, const struct nd_monitor_message *message) {
        if (message->letter == ND_MONITOR_IS_EXITED) {
                end(work, nullptr);
        } else if (message->letter == ND_MONITOR_DROPPED) {
                end(work,
                    nd_error_new(ND_EXHAUSTED, 0, "the client read the container's output too slowly and was disconnected"));
        } else if (message->letter == ND_MONITOR_ATTACHED && message->error_number != 0) {
                nd_autofree char *words = nd_strndup(message->words, message->length);

                end(work, nd_error_new(nd_error_code_of(message->error_number), 0, "%s",
                                       *words ? words : "the container has exited"));
        } else if (message->letter == ND_MONITOR_ATTACHED) {
                work->patience = sd_event_source_disable_unref(work->patience);
                resize(work, cri_stdio_window(work->stdio));
        }
}

static int on_message([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct work *work = userdata;
        struct nd_monitor_message message;
        char bytes[ND_MONITOR_MESSAGE];
        ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0)
                end(work, nd_error_new(ND_UNAVAILABLE, 0, "lost the connection to the container's monitor"));
        else if (nd_monitor_message_read(bytes, (size_t) n, &message))
                take_message(work, &message);
        return 0;
}

static int on_impatience([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        end(userdata, nd_error_new(ND_DEADLINE, 0, "the container's monitor did not respond within %llu s",
                                   (unsigned long long) (answer_timeout_us / ND_SECOND_US)));
        return 0;
}

/* ---- start ---- */

/* The monitor's ends of the streams. */
struct ends {
        unsigned streams; /* bits of the wire format */
        size_t count;
        int fds[ND_MONITOR_STREAMS];
};

static void ends_done(struct ends *ends) {
        for (size_t i = 0; i < nd_count_of(ends->fds) && i < ends->count; i++)
                nd_close_fd(&ends->fds[i]);
}

/* Falls back to the largest size that the kernel allows. */
static void enlarge(int fd) {
        const int size = BUFFER;

        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
                (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static struct nd_error *add_stream(struct cri_stdio *stdio, enum cri_stdio_role role, unsigned bit, struct ends *ends) {
        int pair[2];

        if (!cri_stdio_wants(stdio, role))
                return nullptr;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a socket pair");
        ends->fds[ends->count++] = pair[1];
        ends->streams |= bit;
        if (role == STDIO_INPUT)
                return cri_stdio_give_input(stdio, pair[0]);
        enlarge(pair[1]);
        return cri_stdio_give_output(stdio, role, pair[0]);
}

static struct nd_error *ask(const struct work *work, const struct ends *ends) {
        char bytes[ND_MONITOR_MESSAGE];
        struct nd_monitor_message question = {.letter = ND_MONITOR_ATTACH, .streams = (uint8_t) ends->streams};
        size_t length = nd_monitor_message_write(&question, bytes);
        ssize_t n = nd_fd_passing_send(work->fd, bytes, length, ends->fds, ends->count, MSG_DONTWAIT);

        if (n < 0)
                return nd_error_new(nd_error_code_of((int) -n), (int) -n,
                                    "send the attach request to the container's monitor");
        return nullptr;
}

static struct nd_error *launch(struct cri_stdio *stdio, struct cri_container *container, void **ret) {
        const struct cri_stream_parts *parts = cri_stdio_parts(stdio);
        nd_autofree char *directory = cri_path_of_container_run(parts->config, container->id);
        nd_cleanup(ends_done) struct ends ends = {};
        struct work *work = nd_new(struct work);

        work->stdio = stdio;
        work->fd = -EBADF;
        *ret = work;
        nd_try(cri_monitor_dial(directory, &work->fd));
        if (work->fd < 0)
                return nd_error_new(ND_PRECONDITION, 0, "the container has exited");
        if (sd_event_add_io(parts->loop, &work->source, work->fd, EPOLLIN, on_message, work) < 0 ||
            sd_event_add_time_relative(parts->loop, &work->patience, CLOCK_MONOTONIC, answer_timeout_us, ND_SECOND_US,
                                       on_impatience, work) < 0)
                return nd_error_new(ND_INTERNAL, 0, "watch the connection to a monitor");
        nd_try(add_stream(stdio, STDIO_INPUT, ND_MONITOR_STDIN, &ends));
        nd_try(add_stream(stdio, STDIO_OUTPUT, ND_MONITOR_STDOUT, &ends));
        nd_try(add_stream(stdio, STDIO_ERRORS, ND_MONITOR_STDERR, &ends));
        return ask(work, &ends);
}

static void *begin(struct cri_stream_connection *connection, struct cri_stream_request *request, const char *protocol) {
        static const struct cri_stdio_kind kind = {
                .trouble = "error attaching to container", .launch = launch, .resize = resize, .cancel = cancel};

        return cri_stdio_begin(connection, request, protocol, &kind);
}

const struct cri_stream_session_type cri_stream_attach = {
        .path = "/attach/",
        .protocols = cri_stdio_protocols,
        .channel_protocols = cri_stdio_channel_protocols,
        .begin = begin,
        .event = cri_stdio_event,
        .room = cri_stdio_room,
        .gone = cri_stdio_gone,
};
