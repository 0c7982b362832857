/* SPDX-License-Identifier: Apache-2.0 */
/* allocator.h - gives namespaces their ranges of user IDs; one of all guards does, by a Lease */
#pragma once

#include "guard/core/store.h"
#include "net/api-client.h"

struct guard_allocator;

struct guard_allocator_settings {
        struct nd_api *api;
        struct guard_store *store;
        const char *namespace;                                                       /* of the Lease and of the record */
        const char *identity;                                                        /* of this guard, unlike any other's */
        void (*log)(const char *what, const struct nd_error *error, void *userdata); /* error may be nullptr */
        void *userdata;
};

/* Begins at once; the store's namespaces must have been listed. */
struct guard_allocator *guard_allocator_new(const struct guard_allocator_settings *settings);
void guard_allocator_free(struct guard_allocator *allocator);

void guard_allocator_wake(struct guard_allocator *allocator); /* a namespace has come */
bool guard_allocator_leads(const struct guard_allocator *allocator);
