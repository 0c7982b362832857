/* SPDX-License-Identifier: Apache-2.0 */
/* watches.h - watches of the API server, which fill the store and the RBAC index */
#pragma once

#include <systemd/sd-event.h>

#include "guard/access/rbac.h"
#include "guard/cluster/allocator.h"
#include "guard/core/store.h"
#include "net/api-watch.h"

/* Watched kinds. */
enum guard_kind {
        GUARD_KIND_CONSTRAINT,
        GUARD_KIND_NAMESPACE,
        GUARD_KIND_FLOOR,
        GUARD_KIND_NODE,
        GUARD_KIND_RUNTIME_CLASS,
        GUARD_KIND_ROLE,
        GUARD_KIND_CLUSTER_ROLE,
        GUARD_KIND_BINDING,
        GUARD_KIND_CLUSTER_BINDING,
        GUARD_KINDS,
};

/* Sets of kinds, by bits. */
#define GUARD_KIND_BIT(kind) (1u << (kind))
#define GUARD_KINDS_ALL ((1u << GUARD_KINDS) - 1)
#define GUARD_KINDS_OF_AUTHORIZER (GUARD_KIND_BIT(GUARD_KIND_FLOOR) | GUARD_KIND_BIT(GUARD_KIND_NODE))

/* The group of NodeVersionFloor, which does not depend on that of the constraints. */
#define GUARD_FLOOR_GROUP "security.nodens.io"

struct guard_watches_settings {
        sd_event *loop;
        struct nd_api *api;
        struct guard_store *store;
        struct guard_rbac *rbac;
        const char *group;             /* API group of the constraints */
        uint32_t kinds;                /* that are watched */
        uint64_t stale_us;             /* age at which data that decide are stale */
        void (*ready)(void *userdata); /* called once, after all lists were read */
        /* called after a change of floors or nodes; may be nullptr */
        void (*nodes_changed)(void *userdata);
        void *userdata;
};

struct guard_watch {
        struct guard_watches *watches;
        enum guard_kind kind;
        char *path;
        struct nd_api_watch *watch;
        /* why the last list or watch failed; nullptr: an object was received since */
        char *trouble;
        uint64_t forbidden_us; /* when a series of 403 began; 0: none does */
        bool is_unavailable;   /* the last response was 403 or 404 */
};

struct guard_watches {
        struct guard_watches_settings settings;
        /* owned by the caller, woken by new namespaces; nullptr: not started yet */
        struct guard_allocator *allocator;
        struct guard_watch kinds[GUARD_KINDS];
        sd_event_source *relist_timer; /* of bindings, when a role has begun to grant something */
        /* rbac.role_generation when the list of bindings that is being read began, and when the
         * last one did */
        uint64_t listing_generation, listed_generation;
        uint64_t relisted_us;
        bool ready; /* settings.ready() was called */
};

/* The object must not move. */
[[nodiscard]] struct nd_error *guard_watches_start(struct guard_watches *watches,
                                                   const struct guard_watches_settings *settings);
void guard_watches_done(struct guard_watches *watches);

/* Whether all lists were read, and the data that decide are current. A cluster without the
 * definition of the floor, or whose floor may not be read, has none. */
bool guard_watches_are_ready(const struct guard_watches *watches);
/* Whether the data that decide are current: namespaces and constraints, or, for the authorizer,
 * floor and nodes. */
bool guard_watches_are_current(const struct guard_watches *watches);
/* Why lists are missing or not current, as far as the API server said so; nullptr: it did not. */
const char *guard_watches_trouble(const struct guard_watches *watches);
bool guard_watches_have_fresh_rbac(const struct guard_watches *watches);
/* Whether no binding to a role that grants something is missing. */
bool guard_watches_have_whole_rbac(const struct guard_watches *watches);
/* Relaxations that the version floor does not cover; all, unless the floor is known and current. */
uint32_t guard_watches_gates_off(const struct guard_watches *watches);
