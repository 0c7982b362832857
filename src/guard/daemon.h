/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the guard at work: watches fill the store, reviews are answered from it */
#pragma once

#include <systemd/sd-event.h>

#include "guard/access/access-review.h"
#include "guard/access/rbac.h"
#include "guard/cluster/allocator.h"
#include "guard/core/config.h"
#include "guard/core/metrics.h"
#include "guard/core/review.h"
#include "guard/core/store.h"
#include "guard/server/certificate.h"
#include "guard/server/server.h"
#include "net/api-watch.h"

enum guard_kind { /* what is watched */
                  GUARD_KIND_CONSTRAINT,
                  GUARD_KIND_NAMESPACE,
                  GUARD_KIND_NODE,
                  GUARD_KIND_RUNTIME_CLASS,
                  GUARD_KIND_ROLE,
                  GUARD_KIND_CLUSTER_ROLE,
                  GUARD_KIND_BINDING,
                  GUARD_KIND_CLUSTER_BINDING,
                  GUARD_KINDS,
};

struct guard_daemon;

struct guard_watch {
        struct guard_daemon *guard;
        enum guard_kind kind;
        char *path;
        struct nd_api_watch *watch;
        bool complained; /* of the trouble that it is in */
};

struct guard_daemon {
        struct guard_config config;
        sd_event *loop;
        struct nd_api *api;
        struct guard_store store;
        struct guard_rbac rbac;
        struct guard_access_reviews *rights;
        struct guard_allocator *allocator; /* nullptr: not configured, or lists are being read */
        char *identity;                    /* unlike any other guard's */
        char *namespace;                   /* of what guards share */
        struct guard_watch watched[GUARD_KINDS];
        struct guard_server *server;
        struct guard_certificate certificate;
        struct guard_metrics metrics;
        sd_event_source *relister; /* of bindings, when roles have come to grant something */
        uint64_t news_listing,
                news_listed; /* rbac.role_generation at the beginning of the bindings' list that is read, and of the last */
        uint64_t relisted_us;
        bool announced; /* that all lists were read */
        bool stale;     /* was complained about */
};

[[nodiscard]] struct nd_error *guard_daemon_start(struct guard_daemon *guard); /* config is set */
void guard_daemon_done(struct guard_daemon *guard);

bool guard_watches_are_ready(const struct guard_daemon *guard);   /* all lists were read, and what decides is current */
bool guard_watches_are_current(const struct guard_daemon *guard); /* namespaces and constraints are */
bool guard_watches_have_fresh_rbac(const struct guard_daemon *guard);
bool guard_watches_have_whole_rbac(
        const struct guard_daemon *guard); /* no binding is missing because its role was of no interest */

/* A review as it comes: false when it cannot be read, which is answered and counted then. And its end: written, answered and counted
 * (review-exchange.c). */
bool guard_webhook_receive(struct guard_daemon *guard, struct guard_exchange *exchange, struct nd_arena *arena,
                           struct guard_review *ret);
void guard_webhook_respond(struct guard_daemon *guard, struct guard_exchange *exchange, enum guard_flow flow,
                           const struct guard_review *review, const struct guard_response *answer);

/* One review, from its bytes to its answer (reviews.c). */
void guard_scc_webhook_handle(struct guard_daemon *guard, struct guard_exchange *exchange, bool validating,
                              enum guard_mode mode);

/* The same of pod security (podsecurity-reviews.c). */
void guard_podsecurity_webhook_handle(struct guard_daemon *guard, struct guard_exchange *exchange, bool enforces);
