/* SPDX-License-Identifier: Apache-2.0 */
/* replicas.h - which guards and authorizers live, and on which version floor each acts
 *
 * Each writes a Lease of its own and renews it. An annotation has the object that it acts on,
 * "UID/GENERATION". */
#pragma once

#include "base/map.h"
#include "net/api-client.h"

#define GUARD_REPLICAS_ANNOTATION "security.nodens.io/acts-on"

struct guard_replicas;

struct guard_replicas_settings {
        struct nd_api *api;
        const char *namespace; /* of the Leases */
        const char *identity;  /* unique among all guards */
        uint64_t number;       /* of the Lease's name, unique as well */
        const char *role;      /* "guard", "authorizer" */
        /* seconds without a renewal after which it has stopped deciding, for others */
        uint32_t lifetime_s;
        void (*changed)(void *userdata); /* after every list; may be nullptr */
        /* error may be nullptr */
        void (*log)(const char *what, const struct nd_error *error, void *userdata);
        void *userdata;
};

/* Starts at once. */
struct guard_replicas *guard_replicas_new(const struct guard_replicas_settings *settings);
void guard_replicas_free(struct guard_replicas *replicas);

/* Reports that all decisions from now on follow this object; "": none. Renews at once if it is
 * another one. */
void guard_replicas_act_on(struct guard_replicas *replicas, const char *object);
/* Lists the others often, or rarely. */
void guard_replicas_observe(struct guard_replicas *replicas, bool often);

/* Returns the holder of a live Lease that does not act on what this one acts on; nullptr: all do,
 * this one among them, in a list that began after it was reported. */
const char *guard_replicas_missing(const struct guard_replicas *replicas);
