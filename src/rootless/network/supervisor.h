/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.h - supervises a node's network helper and follows changes of the host's network */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"
#include "rootless/network/netplan.h"

struct rootless_supervisor;

/* Starts the helper of a running node and waits until it has attached to the tap; returns at once
 * for drivers without a helper. From then on the event loop does the rest. The node and the record
 * must outlive the supervisor. */
[[nodiscard]] struct nd_error *rootless_supervisor_start(sd_event *loop, const struct rootless_node *node,
                                                         const struct rootless_node_record *record,
                                                         struct rootless_supervisor **ret);
void rootless_supervisor_free(struct rootless_supervisor *supervisor); /* stops the helper, too */

/* The driver and its helper, or why the helper is not running; for the status of the unit, which
 * follows changes. */
[[nodiscard]] const char *rootless_supervisor_state(const struct rootless_supervisor *s);

/* Returns what is known against a driver on this host, with the remedy, or nullptr. Runs the helper
 * to ask for its version. */
[[nodiscard]] const char *rootless_supervisor_warning(const char *driver);

/* Logs it, for the journal of a node that stays: on the stderr of `run` it would mix with the
 * command's. */
void rootless_supervisor_log_warning(const struct rootless_supervisor *s);

/* Returns the PID of the recorded helper, 0 if it is not running. For `status`. */
[[nodiscard]] pid_t rootless_supervisor_helper_pid(const struct rootless_node *node);
