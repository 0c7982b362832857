/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - waits until a new control plane and its node are ready, and reports each step */
#pragma once

#include "base/error.h"

struct rootless_wait_settings {
        const char *name;      /* of the node */
        const char *directory; /* of the control plane */
        const char *node_name; /* of the Node object */
        const char *since;     /* when `up` began, in microseconds of the monotonic clock */
        bool json;
};

[[nodiscard]] struct nd_error *rootless_plane_wait(const struct rootless_wait_settings *settings);
