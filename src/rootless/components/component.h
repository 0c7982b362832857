/* SPDX-License-Identifier: Apache-2.0 */
/* component.h - the programs of Kubernetes in a node
 *
 * A component is one row of a table: how it is called, its command line, and the files that it
 * needs in the node. Everything else works with the rows: the launcher adds the files to the bind
 * plan and writes a record (record.h) for each component, a process outside of the node starts it
 * (run.h), and units and `status` go by its name. */
#pragma once

#include "rootless/components/cluster.h"
#include "rootless/node/bindplan.h"

struct rootless_component {
        const char *name;  /* also of its cgroup's leaf, its record and its unit */
        bool notifies;     /* it calls sd_notify(3); otherwise it is ready when it runs */
        bool stops_first;  /* it ends before the pods do when the node stops */
        bool outside;      /* with the node's network and the host's files (outside.h) */
        const char *after; /* the component that must be ready before it starts; nullptr = none */
        /* Port to publish, as of `ports add`; nullptr = none. */
        char *(*publish)(const struct rootless_cluster *cluster);
        /* Finds the program and makes the command line, without the terminating nullptr. */
        struct nd_error *(*argv)(const struct rootless_cluster *cluster, struct nd_strings *ret);
        /* Adds its files to a bind plan. */
        struct nd_error *(*files)(const struct rootless_cluster *cluster, struct rootless_bindplan *plan);
};

/* In components named after them. */
extern const struct rootless_component rootless_component_nodens_cri;
extern const struct rootless_component rootless_component_containerd;
extern const struct rootless_component rootless_component_kubelet;
extern const struct rootless_component rootless_component_proxy;
/* In control-plane.c. */
extern const struct rootless_component rootless_component_etcd;
extern const struct rootless_component rootless_component_apiserver;
extern const struct rootless_component rootless_component_controller_manager;
extern const struct rootless_component rootless_component_scheduler;

enum { COMPONENTS_CEILING = 8, KUBELET_PORT = 10250 };

/* The components of a node, in the order of their start; returns their number. */
[[nodiscard]] size_t rootless_components_of(const struct rootless_cluster *cluster,
                                            const struct rootless_component *ret[static COMPONENTS_CEILING]);

/* Adds the files of all components to a bind plan. */
[[nodiscard]] struct nd_error *rootless_components_files(const struct rootless_cluster *cluster,
                                                         struct rootless_bindplan *plan);

/* Records the components of a running node; their units start then. */
[[nodiscard]] struct nd_error *rootless_components_record(const struct rootless_cluster *cluster,
                                                          const struct rootless_node *node);
