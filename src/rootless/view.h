/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - makes the bind plan true: runs in the holder, in its own mount namespace */
#pragma once

#include "rootless/bindplan.h"

[[nodiscard]] struct nd_error *nd_view_enter(const nd_bindplan *plan);

/* Replaces a file of the node's /etc that the plan has written. */
[[nodiscard]] struct nd_error *nd_view_write(const char *path, const char *text);
