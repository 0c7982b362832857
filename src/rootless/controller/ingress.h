/* SPDX-License-Identifier: Apache-2.0 */
/* ingress.h - the host's address in status.loadBalancer of Services
 *
 * A Service whose load balancer ports are all published has the host's address there, with ipMode
 * Proxy: connections arrive at the node port. Addresses of other nodes and of other controllers are
 * not touched. */
#pragma once

#include "net/api-client.h"
#include "rootless/controller/store.h"

struct rootless_ingress {
        struct nd_api *api;
        const char *address; /* nullptr: the status is not changed */
        const struct rootless_store *store;
        struct nd_map published; /* NAMESPACE/NAME of Services that have the address */
        struct nd_api_call *call;
        char *current; /* the Service of the call */
        sd_event_source *timer;
        uint64_t pause_us;
};

[[nodiscard]] struct nd_error *rootless_ingress_start(struct rootless_ingress *ingress, struct nd_api *api,
                                                      const char *address, const struct rootless_store *store);
void rootless_ingress_done(struct rootless_ingress *ingress);

/* Takes the keys over. */
void rootless_ingress_set(struct rootless_ingress *ingress, struct nd_map *published);
/* A Service may have changed. */
void rootless_ingress_update(struct rootless_ingress *ingress);

/* The patch that adds or removes the address; nullptr: nothing to do. Pure. */
[[nodiscard]] char *rootless_ingress_patch(const struct rootless_service *service, const char *address, bool is_published);
