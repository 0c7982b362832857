/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - runs the processes that serve a node without a service manager: forwarder, port
 * controller, components of Kubernetes */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"

struct rootless_services;

enum { SERVICES_CEILING = 16 };

/* One of them: `nodens-rootless COMMAND [OPERAND] --name NODE`. The strings must outlive it. */
struct rootless_service_plan {
        const char *command;
        const char *operand; /* nullptr = none */
};

/* Starts the services, or adopts the services of an earlier launcher. They exit when the node does.
 * The node object must outlive this one. */
[[nodiscard]] struct nd_error *rootless_services_start(sd_event *loop, const struct rootless_node *node,
                                                       const struct rootless_service_plan *list, size_t count,
                                                       struct rootless_services **ret);
void rootless_services_free(struct rootless_services *services); /* they keep running */
/* Waits until they have ended, for at most that time: for a node that has stopped. */
void rootless_services_wait(struct rootless_services *services, uint64_t timeout_us);
void rootless_services_end(struct rootless_services *services); /* stops them and frees */
