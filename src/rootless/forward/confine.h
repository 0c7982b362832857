/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - the forwarder's cell: no capability, no new privileges, and only the system calls that moving bytes takes */
#pragma once

#include "base/error.h"

[[nodiscard]] struct nd_error *rootless_confine_forwarder(void);
