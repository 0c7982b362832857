/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - the server: threads that read requests from the kernel and work on them */
#pragma once

#include "bridge/state.h"

/* Serves until the filesystem is unmounted. Exits the process. */
[[noreturn]] void bridge_serve(struct bridge_state *state);
