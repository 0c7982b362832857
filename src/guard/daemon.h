/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - assembly of the guard: watches fill the store, webhooks answer reviews from it */
#pragma once

#include "guard/authorizer/access-request.h"
#include "guard/authorizer/authorizer-routes.h"
#include "guard/cluster/label-sync.h"
#include "guard/cluster/secret.h"
#include "guard/floor/floor-control.h"
#include "guard/server/certificate.h"
#include "guard/server/drain.h"
#include "guard/webhook/routes.h"

struct guard_daemon {
        enum guard_role role;
        struct guard_config config;
        sd_event *loop;
        struct nd_api *api;
        struct guard_store store;
        struct guard_rbac rbac;
        struct guard_access_reviews *access_reviews;
        uint64_t number; /* random, part of the identity */
        char *identity;  /* unique among all guards */
        char *namespace; /* of the objects that guards share: the Lease and the record of ranges */
        struct guard_health health;
        struct nd_api_credentials credentials;
        struct guard_watches watches;
        struct guard_webhook webhook;
        struct guard_routes routes;
        struct guard_authorizer_routes authorizer; /* instead of the two before, in that role */
        struct guard_floor_control *floor;         /* nullptr: not started yet */
        struct guard_label_sync *label_sync;       /* nullptr: not started yet, or off */
        struct guard_server *server;
        struct guard_drain drain;
        struct guard_certificate certificate;
        struct guard_secret *secret; /* nullptr: certificates are files */
        /* what the secret has delivered, if it has to; until then the guard is not ready */
        bool has_certificate, has_client_ca;
        char *secret_problem; /* why not; nullptr: it has not failed */
        struct guard_metrics metrics;
};

[[nodiscard]] struct nd_error *guard_daemon_start(
        struct guard_daemon *guard); /* role and config are set; the object stays where it is */
void guard_daemon_done(struct guard_daemon *guard);
