/* SPDX-License-Identifier: Apache-2.0 */
/* allocator.h - allocates ranges of user IDs to namespaces; a Lease elects the one guard that
 * does */
#pragma once

#include "guard/core/store.h"
#include "net/api-client.h"

struct guard_allocator;

struct guard_allocator_settings {
        struct nd_api *api;
        struct guard_store *store;
        /* of the Lease and of the record */
        const char *namespace;
        /* unique among all guards */
        const char *identity;
        /* error may be nullptr */
        void (*log)(const char *what, const struct nd_error *error, void *userdata);
        void *userdata;
};

/* Starts at once; the store's namespaces must have been listed. */
struct guard_allocator *guard_allocator_new(const struct guard_allocator_settings *settings);
void guard_allocator_free(struct guard_allocator *allocator);

void guard_allocator_wake(struct guard_allocator *allocator); /* a namespace was added */
bool guard_allocator_leads(const struct guard_allocator *allocator);
