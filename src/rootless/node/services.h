/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - keeps a node's forwarder and port controller running where no service manager does */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"

struct nd_parts;

/* Starts them, or takes up those that an earlier launcher has left. They end by themselves when the node does. The node must live as long. */
[[nodiscard]] struct nd_error *nd_parts_start(sd_event *loop, const struct nd_node *node, struct nd_parts **ret);
void nd_parts_free(struct nd_parts *parts); /* they go on */
void nd_parts_end(struct nd_parts *parts);  /* ends them, and frees */
