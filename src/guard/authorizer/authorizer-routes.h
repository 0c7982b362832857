/* SPDX-License-Identifier: Apache-2.0 */
/* authorizer-routes.h - the paths that the authorizer answers: /authorize, probes and metrics */
#pragma once

#include "guard/cluster/credentials.h"
#include "guard/webhook/routes.h"

struct guard_authorizer_routes {
        const struct guard_store *store;
        const struct guard_watches *watches;
        const struct guard_server *server; /* for its metrics; set before the first request */
        struct guard_health *health;
        const struct nd_api_credentials *credentials;
        struct guard_metrics *metrics;
};

/* For struct guard_server_settings; userdata is a struct guard_authorizer_routes. */
void guard_authorizer_routes_handle(struct guard_exchange *exchange, void *userdata);
void guard_authorizer_routes_answered(const char *path, uint64_t microseconds, void *userdata);
