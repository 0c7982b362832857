/* SPDX-License-Identifier: Apache-2.0 */
/* broker.h - connects pulls of the node to registries from the host's network */
#pragma once

#include "base/error.h"

/* Where the node finds the broker, below the node's api directory. */
#define BROKER_SOCKET "api/broker.sock"
/* The ports that the launcher allows, in the node's directory. */
#define BROKER_PORTS_FILE "broker"

/* Serves a node until its init exits. */
[[nodiscard]] struct nd_error *rootless_broker_run(const char *name);
