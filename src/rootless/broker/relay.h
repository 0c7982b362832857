/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - copies between a TCP socket of the host and a stream of the node, by splice() */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct rootless_broker_relays;

[[nodiscard]] struct nd_error *rootless_broker_relays_new(sd_event *loop, size_t limit, struct rootless_broker_relays **ret);
void rootless_broker_relays_free(struct rootless_broker_relays *relays);

/* Takes both descriptors, also if it fails. False if there are too many relays. */
[[nodiscard]] bool rootless_broker_relay_add(struct rootless_broker_relays *relays, int tcp, int local);
