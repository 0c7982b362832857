/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - runs a node's forwarder and port controller without a service manager */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"

struct rootless_services;

/* Starts the services, or adopts the services of an earlier launcher. They exit when the node does.
 * The node object must outlive this one. */
[[nodiscard]] struct nd_error *rootless_services_start(sd_event *loop, const struct rootless_node *node,
                                                       struct rootless_services **ret);
void rootless_services_free(struct rootless_services *services); /* they keep running */
void rootless_services_end(struct rootless_services *services);  /* stops them and frees */
