/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/command/daemon.h"

#include <signal.h>
#include <systemd/sd-daemon.h>

#include "rootless/command/commands.h"

void rootless_daemon_done(struct rootless_daemon *d) {
        rootless_services_free(d->services);
        rootless_supervisor_free(d->supervisor);
        nd_close_fd(&d->pidfd);
        sd_event_unref(d->loop);
        rootless_node_record_done(&d->record);
        rootless_node_done(&d->node);
        rootless_config_done(&d->config);
}

static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                     void *userdata) {
        struct rootless_daemon *d = userdata;

        d->signalled = true;
        return sd_event_exit(d->loop, 0);
}

static int on_init_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                         void *userdata) {
        struct rootless_daemon *d = userdata;

        return sd_event_exit(d->loop, 0);
}

struct nd_error *rootless_daemon_wait(struct rootless_daemon *d) {
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        r = sd_event_add_io(d->loop, nullptr, d->pidfd, EPOLLIN, on_init_ended, d);
        if (r >= 0)
                r = sd_event_add_signal(d->loop, nullptr, SIGTERM, on_signal, d);
        if (r >= 0)
                r = sd_event_add_signal(d->loop, nullptr, SIGINT, on_signal, d);
        if (r >= 0)
                r = sd_event_set_watchdog(d->loop, true);
        if (r >= 0)
                r = sd_notify(0, "READY=1");
        if (r >= 0)
                r = sd_event_loop(d->loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the node") : nullptr;
}

struct nd_error *rootless_daemon_prepare(struct rootless_daemon *d, const struct rootless_settings *settings) {
        int r = sd_event_new(&d->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_config_resolve(settings, true, rootless_command_getenv, nullptr, &d->config));
        return rootless_node_open(d->config.name, true, &d->node);
}
