/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.h - takes over or undoes the pods of the previous daemon */
#pragma once

#include "base/error.h"

struct cri_parts;

/* Loads the records. When this returns, acknowledged objects have their last state as far as it can
 * be determined without waiting; unacknowledged ones are being undone from the loop. Objects of an
 * earlier boot are NOTREADY and EXITED. */
[[nodiscard]] struct nd_error *cri_recovery_run(struct cri_parts *parts);
