/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - confines forwarder and broker: no capabilities, no new privileges, and only the
 * system calls that forwarding needs */
#pragma once

#include "base/error.h"

[[nodiscard]] struct nd_error *rootless_confine_forwarder(void);
[[nodiscard]] struct nd_error *rootless_confine_broker(void);
