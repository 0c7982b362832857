/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - starts a node from its settings */
#pragma once

#include "rootless/core/node.h"
#include "rootless/node/bindplan.h"
#include "rootless/node/ids.h"
#include "rootless/node/settings.h"

/* Makes the bind plan; more has further entries, nullptr = none. Creates the data directory unless
 * dry. */
[[nodiscard]] struct nd_error *rootless_launch_bindplan(struct rootless_config *config, const struct rootless_node *node,
                                                        const char *resolv, bool dry, const struct rootless_bindplan *more,
                                                        struct rootless_bindplan *ret);

/* Creates the data directory, and makes its path in the settings canonical. */
[[nodiscard]] struct nd_error *rootless_launch_make_data(struct rootless_config *config);

/* Starts the init of a node whose lock we hold, and records it. die_with_us: the node ends with the
 * calling process. A node with Kubernetes needs a delegated cgroup, unless the settings say
 * otherwise. */
[[nodiscard]] struct nd_error *rootless_launch_node(struct rootless_config *config, const struct rootless_node *node,
                                                    bool die_with_us, const struct rootless_ids *ids,
                                                    const struct rootless_bindplan *more,
                                                    struct rootless_node_record *ret_record, int *ret_pidfd);
