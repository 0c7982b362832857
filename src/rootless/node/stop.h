/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - stops a node */
#pragma once

#include "rootless/core/node.h"

/* Asks init to stop everything, waits for the grace period, then kills it. */
[[nodiscard]] struct nd_error *rootless_node_stop(const struct rootless_node *node, int pidfd);
