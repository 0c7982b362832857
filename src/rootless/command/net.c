/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - `nodens-rootless net`: supervises the network helper from a unit of its own
 *
 * It follows the list of --peers, too. It can be killed or upgraded: it is restarted, and the node
 * keeps running meanwhile. */
#include "rootless/command/commands.h"
#include "rootless/command/daemon.h"

static struct nd_error *net(struct rootless_daemon *d, const char *name) {
        int r = sd_event_new(&d->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_node_open(name, false, &d->node));
        nd_try(rootless_node_open_init(&d->node, &d->record, &d->pidfd));
        nd_try(rootless_supervisor_start(d->loop, &d->node, &d->record, &d->supervisor));
        rootless_supervisor_log_warning(d->supervisor);
        nd_try(rootless_overlay_follower_start(d->loop, &d->node, &d->follower));
        return rootless_daemon_wait(d);
}

int rootless_command_net(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        const struct rootless_settings *given = settings;
        struct rootless_daemon d = DAEMON_NONE;
        struct nd_error *error = net(&d, given->name ? given->name : NODE_DEFAULT_NAME);

        rootless_daemon_done(&d);
        return error ? rootless_command_fail_service(error) : EXIT_SUCCESS;
}
