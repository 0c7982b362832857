/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - ending a node */
#pragma once

#include "rootless/core/node.h"

/* Asks init to end everything, waits for its grace, and ends it where it does not. */
[[nodiscard]] struct nd_error *rootless_node_stop(const struct rootless_node *node, int pidfd);
