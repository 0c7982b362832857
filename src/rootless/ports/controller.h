/* SPDX-License-Identifier: Apache-2.0 */
/* controller.h - keeps the list of published ports, listens for them and serves the API */
#pragma once

#include "base/error.h"

/* Serves a node that runs, until it ends or a signal comes. */
[[nodiscard]] struct nd_error *rootless_controller_run(const char *name);
