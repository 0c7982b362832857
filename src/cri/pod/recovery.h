/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.h - what the last daemon left: taken over, or undone */
#pragma once

#include "base/error.h"

struct cri_parts;

/* Loads the records. What was acknowledged is as it was when this returns, as far as one can tell without waiting; what was not is being undone from the loop.
 * What belongs to an earlier boot is NOTREADY and EXITED. */
[[nodiscard]] struct nd_error *cri_recovery_run(struct cri_parts *parts);
