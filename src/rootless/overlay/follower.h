/* SPDX-License-Identifier: Apache-2.0 */
/* follower.h - keeps a running node's overlay equal to the list of --peers */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"

struct rootless_overlay_follower;

/* Applies the list, and follows its changes from then on. *ret is nullptr for a node without
 * peers. */
[[nodiscard]] struct nd_error *rootless_overlay_follower_start(sd_event *loop, const struct rootless_node *node,
                                                               struct rootless_overlay_follower **ret);
void rootless_overlay_follower_free(struct rootless_overlay_follower *f);
