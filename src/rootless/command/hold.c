/* SPDX-License-Identifier: Apache-2.0 */
/* hold.c - `nodens-rootless hold`: launches init, makes it the unit's main process and exits
 *
 * The unit (nodens-node@.service) has no Restart: the node ends when init exits. */
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "rootless/command/commands.h"
#include "rootless/command/daemon.h"
#include "sys/notify.h"

static constexpr uint64_t notify_timeout_us = 5 * ND_SECOND_US;

static struct nd_error *hold(struct rootless_daemon *d, const struct rootless_settings *settings) {
        nd_autoerror struct nd_error *absent = nullptr;
        nd_autofree char *assignments = nullptr, *summary = nullptr;
        int r;

        nd_notify_status("starting the node");
        nd_try(rootless_daemon_prepare(d, settings));
        nd_try(rootless_node_lock(&d->node));
        absent = rootless_node_open_init(&d->node, &d->record, &d->pidfd);
        if (!absent)
                return nd_error_new(ND_EXISTS, EEXIST, "node '%s' is already running as process %d", d->config.name,
                                    (int) d->record.pid);
        nd_try(rootless_daemon_launch(d));
        assignments = nd_format("MAINPID=%d\nREADY=1", (int) d->record.pid);
        summary = rootless_daemon_summary(d);
        r = nd_notify_send(assignments, summary);
        if (r > 0)
                /* The manager attributes the message to this process, which must still exist. */
                r = sd_notify_barrier(0, notify_timeout_us);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "make the init process of the node the main process of its unit")
                     : nullptr;
}

int rootless_command_hold(void *settings, [[maybe_unused]] int operand_count, [[maybe_unused]] char **operands) {
        struct rootless_settings given = *(struct rootless_settings *) settings;
        struct rootless_daemon d = DAEMON_NONE;
        struct nd_error *error;

        if (!given.name)
                given.name = NODE_DEFAULT_NAME;
        error = hold(&d, &given);
        rootless_daemon_done(&d);
        return error ? rootless_command_fail_service(error) : EXIT_SUCCESS;
}
