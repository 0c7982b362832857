/* SPDX-License-Identifier: Apache-2.0 */
/* publisher.h - makes the published ports of the node equal to those that the cluster's objects get
 *
 * All of them are the ports of one owner (rootless/ports/api.h), CLUSTER_OWNER: ports of the user
 * are not touched. */
#pragma once

#include "rootless/controller/store.h"
#include "rootless/core/node.h"
#include "rootless/ports/api-call.h"

#define CLUSTER_OWNER "kubernetes"

struct rootless_publisher_settings {
        sd_event *loop;
        const struct rootless_node *node;
        const struct rootless_store *store;
        struct rootless_port_policy policy;
        /* The ports are as the list says. Problems are those of the decision and of the port
         * controller; published_balancers are keys of Services, which the caller may take. */
        void (*published)(const struct rootless_wanted *result, size_t count, struct nd_map *balancers, void *userdata);
        /* The port controller is away; it is retried. nullptr: it is there again. */
        void (*trouble)(const struct nd_error *error, void *userdata);
        void *userdata;
};

struct rootless_publisher;

[[nodiscard]] struct nd_error *rootless_publisher_new(const struct rootless_publisher_settings *settings,
                                                      struct rootless_publisher **ret);
void rootless_publisher_free(struct rootless_publisher *publisher);

/* Objects have changed. */
void rootless_publisher_wake(struct rootless_publisher *publisher);
