/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the objects of the cluster that concern a node, kept current by watches
 *
 * Services of type NodePort and LoadBalancer, EndpointSlices with an endpoint on the node, the
 * node's pods with host ports, and all Nodes. The number of objects of each kind is limited;
 * objects beyond it are ignored and counted. */
#pragma once

#include "net/api-watch.h"
#include "rootless/controller/objects.h"
#include "rootless/controller/wanted-ports.h"

enum rootless_kind { KIND_SERVICE, KIND_SLICE, KIND_POD, KIND_NODE, KINDS };

enum { STORE_OBJECTS = 16384 }; /* of a kind */

struct rootless_store;

struct rootless_store_kind {
        struct rootless_store *store;
        enum rootless_kind kind;
        struct nd_api_table table;
        struct nd_api_watch *watch;
        char *query;
        char *trouble; /* why it cannot be read; nullptr: it can */
        size_t ignored;
};

struct rootless_store_settings {
        struct nd_api *api;
        const char *node_name;
        bool has_nodes; /* watch Nodes, too */
        /* Something that decides about ports has changed, or all lists were read. */
        void (*changed)(void *userdata);
        void (*node_changed)(const struct rootless_node_info *node, void *userdata);
        void *userdata;
};

struct rootless_store {
        struct rootless_store_settings settings;
        struct rootless_store_kind kinds[KINDS];
};

/* The object must not move. */
void rootless_store_start(struct rootless_store *store, const struct rootless_store_settings *settings);
void rootless_store_done(struct rootless_store *store);

/* Whether Services, EndpointSlices and pods were read once. */
[[nodiscard]] bool rootless_store_is_synced(const struct rootless_store *store);
/* Why a kind cannot be read; nullptr: all can. */
const char *rootless_store_trouble(const struct rootless_store *store);

/* NAMESPACE/NAME */
const struct rootless_service *rootless_store_service(const struct rootless_store *store, const char *name);

/* Decides by the objects as they are. */
[[nodiscard]] struct rootless_wanted rootless_store_decide(const struct rootless_store *store,
                                                           const struct rootless_port_policy *policy);
