/* SPDX-License-Identifier: Apache-2.0 */
/* wanted-ports.h - which ports of the host the objects of a cluster ask for and get
 *
 * A pure function of the objects and the policy:
 *
 *      Service, nodePort               node's port of that number; with externalTrafficPolicy Local
 *                                      only if the node has an endpoint
 *      Service, healthCheckNodePort    the same, with or without an endpoint: kube-proxy answers
 *      Service, port of LoadBalancer   node port of that port of the Service
 *      pod on this node, hostPort      node's port of that number
 *
 * Two objects can ask for the same port. Node ports come first, as the API server allocates them;
 * then the older object has it, so that a new object takes nothing away. */
#pragma once

#include "base/map.h"
#include "rootless/controller/objects.h"
#include "rootless/controller/policy.h"
#include "rootless/ports/ports.h"

enum {
        WANTED_PROBLEMS = 256, /* more are only counted */
};

struct rootless_cluster_objects {
        const struct rootless_service *const *services;
        size_t service_count;
        /* Keys: NAMESPACE/NAME of Services with an endpoint on the node. */
        const struct nd_map *local;
        const struct rootless_pod *const *pods;
        size_t pod_count;
};

struct rootless_wanted_port {
        struct rootless_port_spec spec;
        const struct rootless_object_id *object; /* of the input */
        bool is_load_balancer;                   /* not a node port */
};

/* A port that an object asks for and does not get. */
struct rootless_port_problem {
        struct rootless_object_id object;
        char *text;       /* cause and remedy */
        bool is_expected; /* the default: load balancers are published only on request */
};

struct rootless_wanted {
        struct rootless_wanted_port *items;
        size_t count;
        size_t capacity;
        nd_vector(struct rootless_port_problem) problems;
        size_t problems_ignored;
};

void rootless_port_problem_done(struct rootless_port_problem *problem);
void rootless_wanted_done(struct rootless_wanted *wanted);

/* The result points into the objects. */
[[nodiscard]] struct rootless_wanted rootless_wanted_decide(const struct rootless_cluster_objects *objects,
                                                            const struct rootless_port_policy *policy);
