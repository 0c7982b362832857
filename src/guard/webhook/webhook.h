/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.h - context that all webhooks share, and receiving reviews and sending responses */
#pragma once

#include "guard/access/access-review.h"
#include "guard/cluster/watches.h"
#include "guard/core/config.h"
#include "guard/core/metrics.h"
#include "guard/server/server.h"

/* Parts of the daemon, which outlive all reviews. */
struct guard_webhook {
        const struct guard_config *config;
        struct nd_api *api;
        struct guard_store *store;
        const struct guard_rbac *rbac;
        struct guard_access_reviews *access_reviews;
        const struct guard_watches *watches;
        struct guard_metrics *metrics;
};

/* Decodes the review of an exchange. Returns false if the body cannot be read; the error response
 * is sent and counted here. */
bool guard_webhook_receive(const struct guard_webhook *webhook, struct guard_exchange *exchange, struct nd_arena *arena,
                           struct guard_review *ret);

/* Sends the response and counts it. */
void guard_webhook_respond(const struct guard_webhook *webhook, struct guard_exchange *exchange, enum guard_flow flow,
                           const struct guard_review *review, const struct guard_response *response);
