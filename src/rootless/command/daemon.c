/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/command/daemon.h"

#include <signal.h>
#include <string.h>

#include "base/log.h"
#include "base/strings.h"
#include "rootless/command/commands.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/notify.h"

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

/* ---- the cgroup ---- */

#define DELEGATE                                                                                                               \
        "as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' " \
        ">/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload; then log in again"

/* Controllers that pods need for limits and that the node does not have; "" = none are missing. */
static char *missing_controllers(const char *cgroup) {
        static const char *const needed[] = {"cpu", "memory", "pids"};
        nd_autofree char *path = nd_format("/sys/fs/cgroup%s/cgroup.controllers", cgroup), *controllers = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, 4096, &controllers);
        nd_autotext struct nd_text missing = ND_TEXT(64);

        for (size_t i = 0; i < nd_count_of(needed); i++)
                if (error || !nd_cgroup_has(controllers, needed[i]))
                        nd_text_addf(&missing, "%s%s", missing.length > 0 ? " " : "", needed[i]);
        return nd_strdup(nd_text_get(&missing));
}

char *rootless_daemon_summary(const struct rootless_daemon *d) {
        const struct rootless_node_record *record = &d->record;
        nd_autofree char *missing = record->cgroup ? missing_controllers(record->cgroup) : nullptr,
                         *reason = missing ? nd_format("controllers not delegated to its cgroup: %s", missing)
                                           : nd_strdup("no cgroup is delegated to it");
        bool limited = missing && !*missing;

        if (!limited)
                nd_log_last(ND_LOG_WARNING, "pods in the node have no resource limits", nd_field("node", d->node.name),
                            nd_field("reason", reason), nd_field("remedy", DELEGATE));
        return nd_format("ready: node %s, process %d, %llu IDs, network %s; resource limits %s", d->node.name,
                         (int) record->pid, (unsigned long long) record->ids, record->net, limited ? "yes" : reason);
}

/* ---- the loop ---- */

struct nd_error *rootless_daemon_wait(struct rootless_daemon *d) {
        nd_autofree char *status = nullptr;
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
                status = nd_format("ready: network %s", rootless_supervisor_state(d->supervisor));
        if (status)
                nd_notify_ready(status);
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
