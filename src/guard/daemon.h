/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - assembly of the guard: watches fill the store, webhooks answer reviews from it */
#pragma once

#include "guard/cluster/secret.h"
#include "guard/server/certificate.h"
#include "guard/webhook/routes.h"

struct guard_daemon {
        struct guard_config config;
        sd_event *loop;
        struct nd_api *api;
        struct guard_store store;
        struct guard_rbac rbac;
        struct guard_access_reviews *access_reviews;
        char *identity;  /* unique among all guards */
        char *namespace; /* of the objects that guards share: the Lease and the record of ranges */
        struct guard_health health;
        struct nd_api_credentials credentials;
        struct guard_watches watches;
        struct guard_webhook webhook;
        struct guard_routes routes;
        struct guard_server *server;
        struct guard_certificate certificate;
        struct guard_secret *secret; /* nullptr: certificates are files */
        /* what the secret has delivered, if it has to; until then the guard is not ready */
        bool has_certificate, has_client_ca;
        char *secret_problem; /* why not; nullptr: it has not failed */
        struct guard_metrics metrics;
};

[[nodiscard]] struct nd_error *guard_daemon_start(
        struct guard_daemon *guard); /* config is set; the object stays where it is */
void guard_daemon_done(struct guard_daemon *guard);
