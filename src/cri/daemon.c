/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.c - see daemon.h
 *
 * Theory of operation
 *   Parts are built from the ground up: loop, store, what works on it, and last the socket, so that nobody is served by half a daemon. They go
 *   in the opposite order. SIGTERM and SIGINT end the loop; whatever was acknowledged is on disk already. */
#include "cri/daemon.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cri/network.h"
#include "cri/pins.h"
#include "cri/service.h"
#include "cri/sweeper.h"
#include "net/unix.h"
#include "oci/store.h"
#include "sys/file.h"

static const struct nd_grpc_method *const tables[] = {service_runtime_methods, service_image_methods, service_node_methods,
                                                      nullptr};

void daemon_done(struct daemon *daemon) {
        nd_grpc_server_free(daemon->server);
        puller_free(daemon->puller);
        sweeper_free(daemon->sweeper);
        network_free(daemon->network);
        pins_free(daemon->pins);
        nd_image_store_free(daemon->images);
        sd_event_unref(daemon->loop);
        cri_config_done(&daemon->config);
}

static struct nd_error *start_loop(struct daemon *daemon) {
        sigset_t signals;
        int r;

        (void) sigemptyset(&signals);
        (void) sigaddset(&signals, SIGTERM);
        (void) sigaddset(&signals, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &signals, nullptr);
        (void) signal(SIGPIPE, SIG_IGN);
        r = sd_event_default(&daemon->loop);
        if (r >= 0)
                r = sd_event_add_signal(daemon->loop, nullptr, SIGTERM, nullptr, nullptr);
        if (r >= 0)
                r = sd_event_add_signal(daemon->loop, nullptr, SIGINT, nullptr, nullptr);
        if (r >= 0)
                (void) sd_event_set_watchdog(daemon->loop, true);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "make an event loop") : nullptr;
}

/* Another daemon that still listens must not lose its socket to us; a dead one's socket is in the way. */
static struct nd_error *clear_way(const struct sockaddr_un *address) {
        nd_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 && connect(fd, (const struct sockaddr *) address, sizeof *address) == 0)
                return nd_error_new(ND_EXISTS, 0, "another nodens-cri listens on '%s'", address->sun_path);
        if (unlink(address->sun_path) < 0 && errno != ENOENT)
                return nd_error_new(nd_code_of_errno(errno), errno, "remove '%s'", address->sun_path);
        return nullptr;
}

static struct nd_error *make_directory_of(const char *path) {
        nd_autofree char *directory = nd_strdup(path);
        char *slash = strrchr(directory, '/');

        if (!slash || slash == directory)
                return nullptr;
        *slash = '\0';
        return nd_dir_make(AT_FDCWD, directory, 0700);
}

static struct nd_error *listen_at(const char *path, int *ret_fd) {
        struct sockaddr_un address;
        nd_autoclose int fd = -EBADF;
        mode_t mask;
        int r;

        nd_try(nd_unix_address(path, &address));
        nd_try(make_directory_of(path));
        nd_try(clear_way(&address));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "make a socket");
        mask = umask(0177);
        r = bind(fd, (struct sockaddr *) &address, sizeof address);
        (void) umask(mask);
        if (r < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "bind '%s'", path);
        if (listen(fd, SOMAXCONN) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "listen on '%s'", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* Requests are logged once, here: failures with their reason, the rest for whoever debugs. */
static void observe(const struct nd_grpc_call *call, uint64_t duration_us, [[maybe_unused]] void *userdata) {
        nd_autofree char *duration = nd_format("%llu", (unsigned long long) duration_us);
        enum nd_code code = nd_grpc_call_status(call);
        bool well = code == ND_OK || code == ND_NOT_FOUND || code == ND_CANCELLED;

        nd_log(well ? ND_LOG_DEBUG : ND_LOG_NOTICE, "request", nd_field("rpc", nd_grpc_call_path(call)),
               nd_field("code", nd_code_name(code)), nd_field("us", duration),
               nd_field("error", nd_grpc_call_status_text(call)));
}

static void report_problems(const struct nd_image_store *images) {
        nd_vector_each (problem, nd_image_store_problems(images)) {
                nd_log(ND_LOG_WARNING, *problem);
        }
}

/* Images that are named in the configuration are pinned, whenever they came. */
static struct nd_error *pin_configured(struct daemon *daemon) {
        nd_vector_each (name, &daemon->config.pinned) {
                const struct nd_image *image = nullptr;

                nd_try(nd_error_wrap(nd_image_store_find(daemon->images, *name, &image), "pinnedImages: '%s'", *name));
                if (image && !image->pinned)
                        nd_try(nd_image_store_pin(daemon->images, &image->id, true));
        }
        return nullptr;
}

struct nd_error *daemon_start(struct daemon *daemon) {
        const struct nd_grpc_server_settings settings = {.tables = tables, .userdata = daemon, .observe = observe};
        nd_autoclose int fd = -EBADF;

        nd_try(start_loop(daemon));
        nd_try(nd_image_store_open(daemon->config.images, &daemon->images));
        report_problems(daemon->images);
        nd_try(pin_configured(daemon));
        nd_try(sweeper_new(daemon->loop, daemon->images, &daemon->sweeper));
        nd_try(puller_new(daemon->loop, &daemon->config, daemon->images, daemon->sweeper, &daemon->puller));
        nd_try(pins_open(&daemon->config, &daemon->pins));
        daemon->network = network_new(daemon->loop, &daemon->config);
        nd_try(nd_grpc_server_new(daemon->loop, &settings, &daemon->server));
        nd_try(listen_at(daemon->config.socket, &fd));
        nd_try(nd_grpc_server_listen(daemon->server, nd_take_fd(fd)));
        sweeper_wake(daemon->sweeper); /* what the last daemon left */
        return nullptr;
}
