/* SPDX-License-Identifier: Apache-2.0 */
/* up.c - starting a node that lasts, and what its units run
 *
 * Theory of operation
 *   hold    launches the holder, hands it to the service manager as the unit's main process, and ends. The unit has no Restart: the
 *           holder's end is the node's end
 *   net     supervises the network helper from a unit of its own; killed or upgraded, it comes back and the node never notices
 *   forward, api   are the two that serve ports (forwarder.h, controller.c)
 *   up --foreground   does the first two in one process and keeps the others as children, for machines without a user manager. It may be killed, too: the holder goes on,
 *           and the next `up --foreground` takes it up again
 *   up      asks the user's systemd for the units */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "rootless/command/commands.h"
#include "rootless/core/control.h"
#include "rootless/network/supervisor.h"
#include "rootless/node/launch.h"
#include "rootless/node/services.h"
#include "rootless/node/stop.h"
#include "rootless/ports/api-client.h"

#define DEFAULT_NAME "default"

struct keeper {
        struct nd_choice choice;
        struct nd_node node;
        struct nd_node_record record;
        sd_event *loop;
        struct nd_supervisor *supervisor;
        struct nd_parts *parts;
        int pidfd;
        bool told; /* a signal has told us to end */
};

static void keeper_done(struct keeper *k) {
        nd_parts_free(k->parts);
        nd_supervisor_free(k->supervisor);
        nd_close_fd(&k->pidfd);
        sd_event_unref(k->loop);
        nd_node_record_done(&k->record);
        nd_node_done(&k->node);
        nd_choice_done(&k->choice);
}

static int on_signal([[maybe_unused]] sd_event_source *source, [[maybe_unused]] const struct signalfd_siginfo *si,
                     void *userdata) {
        struct keeper *k = userdata;

        k->told = true;
        return sd_event_exit(k->loop, 0);
}

static int on_holder_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                           void *userdata) {
        struct keeper *k = userdata;

        return sd_event_exit(k->loop, 0);
}

/* Runs until a signal comes or the holder ends. */
static struct nd_error *keep(struct keeper *k) {
        sigset_t mask;
        int r;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        r = sd_event_add_io(k->loop, nullptr, k->pidfd, EPOLLIN, on_holder_ended, k);
        if (r >= 0)
                r = sd_event_add_signal(k->loop, nullptr, SIGTERM, on_signal, k);
        if (r >= 0)
                r = sd_event_add_signal(k->loop, nullptr, SIGINT, on_signal, k);
        if (r >= 0)
                r = sd_event_set_watchdog(k->loop, true);
        if (r >= 0)
                r = sd_notify(0, "READY=1");
        if (r >= 0)
                r = sd_event_loop(k->loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the node") : nullptr;
}

static struct nd_error *prepare(struct keeper *k, const struct nd_settings *settings) {
        int r = sd_event_new(&k->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "make an event loop");
        nd_try(nd_settings_choose(settings, true, rootless_variable, nullptr, &k->choice));
        return nd_node_open(k->choice.name, true, &k->node);
}

static struct nd_error *foreground(struct keeper *k, const struct nd_settings *settings) {
        nd_autoerror struct nd_error *absent = nullptr;

        nd_try(prepare(k, settings));
        nd_try(nd_node_lock(&k->node));
        absent = nd_node_holder(&k->node, &k->record, &k->pidfd);
        if (absent)
                nd_try(nd_launch(&k->choice, &k->node, false, &k->record, &k->pidfd));
        else
                nd_log(ND_LOG_NOTICE, "the node runs already; it is taken up again", nd_field("node", k->choice.name));
        if (k->choice.net != ND_NET_HOST)
                nd_try(nd_parts_start(k->loop, &k->node, &k->parts));
        nd_try(nd_supervisor_start(k->loop, &k->node, &k->record, &k->supervisor));
        if (settings->publish)
                nd_try(nd_publish_list(k->choice.name, settings->publish));
        nd_log(ND_LOG_NOTICE, "the node is up", nd_field("node", k->choice.name));
        nd_try(keep(k));
        if (k->told)
                nd_try(nd_stop_holder(&k->node, k->pidfd));
        nd_node_clear(&k->node);
        return nullptr;
}

static int ask_manager(const char *name) {
        nd_autofree char *node = nd_format("nodens-node@%s.service", name),
                         *net = nd_format("nodens-node-net@%s.service", name),
                         *forward = nd_format("nodens-node-forward@%s.service", name),
                         *api = nd_format("nodens-node-api@%s.service", name);

        (void) execlp("systemctl", "systemctl", "--user", "start", node, net, forward, api, (char *) nullptr);
        return rootless_fail(nd_error_new(
                ND_UNAVAILABLE, errno, "run systemctl --user; without a user manager use 'nodens-rootless up --foreground'"));
}

int rootless_up(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct nd_settings given = *(struct nd_settings *) settings;
        struct keeper k = {.node = ND_NODE_NONE, .pidfd = -EBADF};
        struct nd_error *error;

        if (!given.name)
                given.name = DEFAULT_NAME;
        if (given.dry_run) {
                error = rootless_explain(&given, true);
                return error ? rootless_fail(error) : EXIT_SUCCESS;
        }
        if (!given.foreground)
                return ask_manager(given.name);
        error = foreground(&k, &given);
        keeper_done(&k);
        return error ? rootless_fail(error) : EXIT_SUCCESS;
}

static struct nd_error *hold(struct keeper *k, const struct nd_settings *settings) {
        nd_autoerror struct nd_error *absent = nullptr;
        int r;

        nd_try(prepare(k, settings));
        nd_try(nd_node_lock(&k->node));
        absent = nd_node_holder(&k->node, &k->record, &k->pidfd);
        if (!absent)
                return nd_error_new(ND_EXISTS, EEXIST, "node '%s' runs already, as process %d", k->choice.name,
                                    (int) k->record.pid);
        nd_try(nd_launch(&k->choice, &k->node, false, &k->record, &k->pidfd));
        r = sd_notifyf(0, "MAINPID=%d\nREADY=1", (int) k->record.pid);
        if (r > 0)
                r = sd_notify_barrier(0,
                                      5 * ND_SECOND_US); /* the manager must see who says this while we still are somebody */
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "hand the holder to the service manager") : nullptr;
}

int rootless_hold(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct nd_settings given = *(struct nd_settings *) settings;
        struct keeper k = {.node = ND_NODE_NONE, .pidfd = -EBADF};
        struct nd_error *error;

        if (!given.name)
                given.name = DEFAULT_NAME;
        error = hold(&k, &given);
        keeper_done(&k);
        return error ? rootless_fail(error) : EXIT_SUCCESS;
}

static struct nd_error *net(struct keeper *k, const char *name) {
        int r = sd_event_new(&k->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "make an event loop");
        nd_try(nd_node_open(name, false, &k->node));
        nd_try(nd_node_holder(&k->node, &k->record, &k->pidfd));
        nd_try(nd_supervisor_start(k->loop, &k->node, &k->record, &k->supervisor));
        return keep(k);
}

int rootless_net(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct nd_settings *given = settings;
        struct keeper k = {.node = ND_NODE_NONE, .pidfd = -EBADF};
        struct nd_error *error = net(&k, given->name ? given->name : DEFAULT_NAME);

        keeper_done(&k);
        return error ? rootless_fail(error) : EXIT_SUCCESS;
}
