/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the controller: publishes the ports of Services and pods, and labels nodes */
#pragma once

#include "rootless/controller/settings.h"

/* Serves a running node until it ends or a signal is received. */
[[nodiscard]] struct nd_error *rootless_controller_run(const struct rootless_controller_settings *settings);
