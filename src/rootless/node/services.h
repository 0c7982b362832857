/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - keeps a node's forwarder and port controller running where no service manager does */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"

struct rootless_services;

/* Starts them, or takes up those that an earlier launcher has left. They end by themselves when the node does. The node must live as long. */
[[nodiscard]] struct nd_error *rootless_services_start(sd_event *loop, const struct rootless_node *node,
                                                       struct rootless_services **ret);
void rootless_services_free(struct rootless_services *services); /* they go on */
void rootless_services_end(struct rootless_services *services);  /* ends them, and frees */
