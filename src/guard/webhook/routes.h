/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the paths that the server answers: webhooks, probes and metrics */
#pragma once

#include "guard/cluster/credentials.h"
#include "guard/cluster/label-sync.h"
#include "guard/webhook/webhook.h"

struct guard_routes {
        const struct guard_webhook *webhook;
        const struct guard_server *server; /* for its metrics; set before the first request */
        struct guard_health *health;
        const struct nd_api_credentials *credentials;
        const struct guard_label_sync *label_sync; /* for its metrics; nullptr: off, or not yet */
};

void guard_routes_respond_plain(struct guard_exchange *exchange, unsigned status, const char *text);
/* Answers a probe, and returns whether the request is one. */
bool guard_routes_answer_probe(struct guard_health *health, struct guard_exchange *exchange);

/* For struct guard_server_settings; userdata is a struct guard_routes. */
enum guard_right guard_routes_needed_right(const char *method, const char *path);
void guard_routes_handle(struct guard_exchange *exchange, void *userdata);
void guard_routes_answered(const char *path, uint64_t microseconds, void *userdata);
