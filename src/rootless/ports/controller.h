/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h - keeps the list of published ports, listens for them and serves the API */
#pragma once

#include "base/error.h"

/* Serves a running node until it ends or a signal is received. */
[[nodiscard]] struct nd_error *rootless_port_controller_run(const char *name);
