/* SPDX-License-Identifier: Apache-2.0 */
/* up.c - `nodens-rootless up`: starts a node that outlives the command
 *
 * Theory of operation
 *   `up` starts the node's units in the user's systemd; they run the commands hold, net, forward
 *   and api.
 *   `up --foreground` does the work of hold and net in one process and runs the others as children
 *   (services.h), for hosts without a user manager. If it is killed, init keeps running and the
 *   next `up --foreground` adopts the node. */
#include "base/log.h"
#include "rootless/command/commands.h"
#include "rootless/command/daemon.h"
#include "rootless/node/launch.h"
#include "rootless/node/stop.h"
#include "rootless/ports/api-client.h"

static struct nd_error *foreground(struct rootless_daemon *d, const struct rootless_settings *settings) {
        nd_autoerror struct nd_error *absent = nullptr;

        nd_try(rootless_daemon_prepare(d, settings));
        nd_try(rootless_node_lock(&d->node));
        absent = rootless_node_open_init(&d->node, &d->record, &d->pidfd);
        if (absent)
                nd_try(rootless_launch_node(&d->config, &d->node, false, &d->record, &d->pidfd));
        else
                nd_log(ND_LOG_NOTICE, "adopted a running node", nd_field("node", d->config.name));
        if (d->config.net != NET_DRIVER_HOST)
                nd_try(rootless_services_start(d->loop, &d->node, &d->services));
        nd_try(rootless_supervisor_start(d->loop, &d->node, &d->record, &d->supervisor));
        if (settings->publish)
                nd_try(rootless_api_publish_list(d->config.name, settings->publish));
        nd_log(ND_LOG_NOTICE, "node started", nd_field("node", d->config.name));
        nd_try(rootless_daemon_wait(d));
        if (d->signalled)
                nd_try(rootless_node_stop(&d->node, d->pidfd));
        rootless_node_clear(&d->node);
        return nullptr;
}

static int ask_manager(const char *name) {
        nd_autofree char *node = nd_format("nodens-node@%s.service", name),
                         *net = nd_format("nodens-node-net@%s.service", name),
                         *forward = nd_format("nodens-node-forward@%s.service", name),
                         *api = nd_format("nodens-node-api@%s.service", name);

        (void) execlp("systemctl", "systemctl", "--user", "start", node, net, forward, api, (char *) nullptr);
        return rootless_command_fail(nd_error_new(
                ND_UNAVAILABLE, errno, "run systemctl --user (without a user manager use 'nodens-rootless up --foreground')"));
}

int rootless_command_up(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct rootless_settings given = *(struct rootless_settings *) settings;
        struct rootless_daemon d = DAEMON_NONE;
        struct nd_error *error;

        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        if (given.dry_run) {
                error = rootless_command_explain(&given, true);
                return error ? rootless_command_fail(error) : EXIT_SUCCESS;
        }
        if (!given.foreground)
                return ask_manager(given.name);
        error = foreground(&d, &given);
        rootless_daemon_done(&d);
        return error ? rootless_command_fail(error) : EXIT_SUCCESS;
}
