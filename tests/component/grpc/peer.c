/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - a server of src/net's gRPC for clients that are not ours
 *
 * Requests and answers are plain bytes, so that Go and Python need no generated code.
 *      /test.Peer/Echo     answers with the request
 *      /test.Peer/Big      the request is a number of bytes in decimal; answers with so many
 *      /test.Peer/Slow     the request is a number of milliseconds; answers after them, unless the
 *      call was cancelled
 *      /test.Peer/Stream   the request is "COUNT SIZE"; answers with so many messages
 *      /test.Peer/Fail     the request is "CODE TEXT"; ends with that status
 *      /test.Peer/Counts   answers "connections calls cancelled descriptors resident-kB" */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/grpc-server.h"
#include "net/unix.h"

static struct {
        sd_event *loop;
        struct nd_grpc_server *server;
        unsigned long cancelled;
} peer;

static void handle_echo(struct nd_grpc_call *call, const char *request, size_t length, [[maybe_unused]] void *userdata) {
        nd_grpc_call_send(call, request, length);
        nd_grpc_call_finish(call, nullptr);
}

static void handle_big(struct nd_grpc_call *call, const char *request, [[maybe_unused]] size_t length,
                       [[maybe_unused]] void *userdata) {
        size_t size = strtoul(request, nullptr, 10);
        nd_autofree char *bytes = nd_malloc(size);

        memset(bytes, 'b', size);
        nd_grpc_call_send(call, bytes, size);
        nd_grpc_call_finish(call, nullptr);
}

struct slow {
        struct nd_grpc_call *call;
        sd_event_source *timer;
};

static void slow_cancelled([[maybe_unused]] void *userdata) {
        peer.cancelled++;
}

static int slow_over([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct slow *slow = userdata;

        nd_grpc_call_send(slow->call, "done", 4);
        nd_grpc_call_finish(slow->call, nullptr);
        sd_event_source_disable_unref(slow->timer);
        free(slow);
        return 0;
}

static void handle_slow(struct nd_grpc_call *call, const char *request, [[maybe_unused]] size_t length,
                        [[maybe_unused]] void *userdata) {
        struct slow *slow = nd_new(struct slow);

        slow->call = call;
        nd_grpc_call_on_cancel(call, slow_cancelled, nullptr);
        (void) sd_event_add_time_relative(peer.loop, &slow->timer, CLOCK_MONOTONIC, strtoul(request, nullptr, 10) * ND_MS_US,
                                          0, slow_over, slow);
}

static void handle_stream(struct nd_grpc_call *call, const char *request, [[maybe_unused]] size_t length,
                          [[maybe_unused]] void *userdata) {
        unsigned long count = 0, size = 0;
        nd_autofree char *bytes = nullptr;

        (void) sscanf(request, "%lu %lu", &count, &size);
        bytes = nd_malloc(size);
        memset(bytes, 's', size);
        while (count-- > 0)
                nd_grpc_call_send(call, bytes, size);
        nd_grpc_call_finish(call, nullptr);
}

static void handle_fail(struct nd_grpc_call *call, const char *request, [[maybe_unused]] size_t length,
                        [[maybe_unused]] void *userdata) {
        int code = 0, start = 0;

        (void) sscanf(request, "%d %n", &code, &start);
        nd_grpc_call_finish(call, nd_error_new((enum nd_error_code) code, 0, "%s", request + start));
}

static size_t count_descriptors(void) {
        DIR *directory = opendir("/proc/self/fd");
        size_t count = 0;

        while (directory && readdir(directory))
                count++;
        if (directory)
                (void) closedir(directory);
        return count;
}

static unsigned long resident_kb(void) {
        unsigned long pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");

        if (file) {
                (void) !fscanf(file, "%*u %lu", &pages);
                (void) fclose(file);
        }
        return pages * 4;
}

static void handle_counts(struct nd_grpc_call *call, [[maybe_unused]] const char *request, [[maybe_unused]] size_t length,
                          [[maybe_unused]] void *userdata) {
        nd_autofree char *text =
                nd_format("%zu %zu %lu %zu %lu", nd_grpc_server_connections(peer.server), nd_grpc_server_calls(peer.server),
                          peer.cancelled, count_descriptors(), resident_kb());

        nd_grpc_call_send(call, text, strlen(text));
        nd_grpc_call_finish(call, nullptr);
}

static const struct nd_grpc_method methods[] = {
        {"/test.Peer/Echo", handle_echo},
        {"/test.Peer/Big", handle_big},
        {"/test.Peer/Slow", handle_slow},
        {"/test.Peer/Stream", handle_stream},
        {"/test.Peer/Fail", handle_fail},
        {"/test.Peer/Counts", handle_counts},
        {},
};

static int listen_on(const char *path) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        nd_autoerror struct nd_error *error = nullptr;
        struct sockaddr_un address;

        error = nd_unix_address(path, &address);
        if (error)
                return -EINVAL;
        if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) < 0 || listen(fd, SOMAXCONN) < 0)
                return -errno;
        return fd;
}

int main(int argc, char **argv) {
        const struct nd_grpc_server_settings settings = {
                .tables = (const struct nd_grpc_method *const[]) {methods, nullptr},
                .stalled_us = argc == 3 ? strtoul(argv[2], nullptr, 10) * ND_MS_US : 0,
        };
        int fd = argc == 2 || argc == 3 ? listen_on(argv[1]) : -EINVAL;

        if (fd < 0 || sd_event_new(&peer.loop) < 0) {
                fputs("peer SOCKET [MILLISECONDS-BEFORE-A-STALLED-CLIENT-IS-DROPPED]\n", stderr);
                return EXIT_FAILURE;
        }
        nd_error_free(nd_grpc_server_new(peer.loop, &settings, &peer.server));
        nd_error_free(nd_grpc_server_listen(peer.server, fd));
        (void) !write(STDOUT_FILENO, "ready\n", 6);
        return sd_event_loop(peer.loop) < 0;
}
