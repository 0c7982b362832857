/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - keeps a node's network helper alive and true to the machine's network */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"
#include "rootless/network/netplan.h"

struct nd_supervisor;

/* Starts the helper of a living node and waits until it has taken the tap; drivers without a helper need nothing. From then on the loop does the rest. The
 * node and the record must live as long as the supervisor. */
[[nodiscard]] struct nd_error *nd_supervisor_start(sd_event *loop, const struct nd_node *node,
                                                   const struct nd_node_record *record, struct nd_supervisor **ret);
void nd_supervisor_free(struct nd_supervisor *supervisor); /* ends the helper, too */

/* Process number of the recorded helper, 0 when none lives. For `status`. */
[[nodiscard]] pid_t nd_supervisor_helper(const struct nd_node *node);
