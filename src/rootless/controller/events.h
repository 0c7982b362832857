/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - Events about Services and pods, for `kubectl describe`
 *
 * Objects are made by all users of the cluster, so the rate is limited: beyond it the log has the
 * problem, and no Event. */
#pragma once

#include "net/api-client.h"
#include "rootless/controller/objects.h"
#include "rootless/controller/rate.h"

enum {
        EVENTS_TEXT = 1024, /* the API server accepts no longer ones */
};

struct rootless_events {
        struct nd_api *api;
        const char *node_name;
        struct rootless_rate rate;
        bool has_failed; /* the last one; logged once */
};

/* Sends a Warning. Its failure is logged once. */
void rootless_events_warn(struct rootless_events *events, const struct rootless_object_id *object, const char *reason,
                          const char *text);

/* The body. Pure. */
[[nodiscard]] char *rootless_events_format(const struct rootless_object_id *object, const char *reason, const char *text,
                                           const char *node_name, time_t now);
