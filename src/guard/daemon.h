/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the guard at work: watches fill the store, reviews are answered from it */
#pragma once

#include <systemd/sd-event.h>

#include "guard/allocator.h"
#include "guard/certificate.h"
#include "guard/config.h"
#include "guard/metrics.h"
#include "guard/rbac.h"
#include "guard/review.h"
#include "guard/rights.h"
#include "guard/server.h"
#include "guard/store.h"
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

struct guard;

struct guard_watched {
        struct guard *guard;
        enum guard_kind kind;
        char *path;
        struct nd_api_watch *watch;
        bool complained; /* of the trouble that it is in */
};

struct guard {
        struct guard_config config;
        sd_event *loop;
        struct nd_api *api;
        struct guard_store store;
        struct guard_rbac rbac;
        struct guard_rights *rights;
        struct guard_allocator *allocator; /* nullptr: not configured, or lists are being read */
        char *identity;                    /* unlike any other guard's */
        char *namespace;                   /* of what guards share */
        struct guard_watched watched[GUARD_KINDS];
        struct guard_server *server;
        struct guard_certificate certificate;
        struct guard_metrics metrics;
        sd_event_source *relister; /* of bindings, when roles have come to grant something */
        uint64_t news_listing,
                news_listed; /* rbac.news at the beginning of the bindings' list that is read, and of the last */
        uint64_t relisted_us;
        bool announced; /* that all lists were read */
        bool stale;     /* was complained about */
};

[[nodiscard]] struct nd_error *guard_start(struct guard *guard); /* config is set */
void guard_done(struct guard *guard);

bool guard_is_ready(const struct guard *guard);   /* all lists were read, and what decides is current */
bool guard_is_current(const struct guard *guard); /* namespaces and constraints are */
bool guard_has_fresh_rbac(const struct guard *guard);
bool guard_has_whole_rbac(const struct guard *guard); /* no binding is missing because its role was of no interest */

/* A review as it comes: false when it cannot be read, which is answered and counted then. And its end: written, answered and counted
 * (review-exchange.c). */
bool guard_review_take(struct guard *guard, struct guard_exchange *exchange, struct nd_arena *arena, struct guard_review *ret);
void guard_review_end(struct guard *guard, struct guard_exchange *exchange, enum guard_flow flow,
                      const struct guard_review *review, const struct guard_answer *answer);

/* One review, from its bytes to its answer (reviews.c). */
void guard_review_begin(struct guard *guard, struct guard_exchange *exchange, bool validating, enum guard_mode mode);

/* The same of pod security (podsecurity-reviews.c). */
void guard_podsecurity_begin(struct guard *guard, struct guard_exchange *exchange, bool enforces);
