/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - keeps a node's network helper alive and true to the machine's network */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"
#include "rootless/network/netplan.h"

struct rootless_supervisor;

/* Starts the helper of a living node and waits until it has taken the tap; drivers without a helper need nothing. From then on the loop does the rest. The
 * node and the record must live as long as the supervisor. */
[[nodiscard]] struct nd_error *rootless_supervisor_start(sd_event *loop, const struct rootless_node *node,
                                                         const struct rootless_node_record *record,
                                                         struct rootless_supervisor **ret);
void rootless_supervisor_free(struct rootless_supervisor *supervisor); /* ends the helper, too */

/* Process number of the recorded helper, 0 when none lives. For `status`. */
[[nodiscard]] pid_t rootless_supervisor_helper_pid(const struct rootless_node *node);
