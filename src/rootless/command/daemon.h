/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - shared by the long-running commands `up --foreground`, `hold` and `net` */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/components/component.h"
#include "rootless/core/node.h"
#include "rootless/network/supervisor.h"
#include "rootless/node/ids.h"
#include "rootless/node/services.h"
#include "rootless/node/settings.h"
#include "rootless/overlay/follower.h"

struct rootless_daemon {
        struct rootless_config config;
        struct rootless_node node;
        struct rootless_node_record record;
        sd_event *loop;
        struct rootless_supervisor *supervisor;
        struct rootless_services *services;
        struct rootless_overlay_follower *follower; /* of a node with peers */
        struct rootless_cluster cluster;            /* overlay also without Kubernetes */
        struct rootless_ids ids;
        int pidfd;
        uint64_t since_us; /* when the command began */
        bool launched;     /* this process has started the node, or tried to */
        bool signalled;    /* SIGTERM or SIGINT was received */
};
#define DAEMON_NONE ((struct rootless_daemon) {.node = NODE_NONE, .pidfd = -EBADF})

void rootless_daemon_done(struct rootless_daemon *d);

/* Creates the event loop, resolves the settings and opens the node's directory. */
[[nodiscard]] struct nd_error *rootless_daemon_prepare(struct rootless_daemon *d, const struct rootless_settings *settings);

/* Finds the node's IDs and its place in the list of --peers, checks the settings of Kubernetes and
 * makes the bind plan of its files; a node without peers or Kubernetes has nothing of these. Dry: a
 * control plane has no certificates yet, and none are made. */
[[nodiscard]] struct nd_error *rootless_daemon_plan(struct rootless_config *config, const struct rootless_node *node, bool dry,
                                                    struct rootless_ids *ret_ids, struct rootless_cluster *ret_cluster,
                                                    struct rootless_bindplan *ret_files);

/* Checks that the host's ports of a node that is not running are free: two nodes of one host share
 * its addresses. */
[[nodiscard]] struct nd_error *rootless_daemon_check_ports(const struct rootless_config *config);

/* Launches the node with its components' files, and records the components. */
[[nodiscard]] struct nd_error *rootless_daemon_launch(struct rootless_daemon *d);

/* Notifies systemd that the node is ready and runs until a signal is received or init exits. */
[[nodiscard]] struct nd_error *rootless_daemon_wait(struct rootless_daemon *d);

/* A line about the running node, for the status of its unit. Logs a warning if its cgroup lacks
 * controllers, because pods have no limits then. */
[[nodiscard]] char *rootless_daemon_summary(const struct rootless_daemon *d);
