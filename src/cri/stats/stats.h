/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - resource usage of pods and containers for the kubelet
 *
 * CPU, memory and the like are read for each request, some dozens of cgroups per iteration of the
 * loop. The disk usage of a container is found by walking its writable layer, which can take long:
 * one worker walks all of them, on request but at most every ten seconds, and a response contains
 * the time of the walk. A worker that enters the pods' namespaces reads the network counters. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/pod-table.h"
#include "cri/stats/usage.h"

struct cri_config;
struct cri_stats;

/* config and pods must outlive it. */
[[nodiscard]] struct cri_stats *cri_stats_new(sd_event *loop, const struct cri_config *config,
                                              const struct cri_pod_table *pods);
void cri_stats_free(struct cri_stats *stats);

struct cri_container_stats {
        char id[POD_ID + 1];                /* look it up: it may have been removed meanwhile */
        struct cri_usage usage;             /* .at == 0: not running, or its cgroup was gone */
        struct cri_tree_usage layer;        /* .at == 0: not measured yet */
        struct cri_process_usage processes; /* .at == 0: not requested */
};

struct cri_sandbox_stats {
        char id[POD_ID + 1];
        struct cri_usage usage; /* of the pod's cgroup, which the kubelet created; .at == 0: none */
        struct cri_network_usage network;
};

/* The IDs, and whether layers and networks are needed. cri_stats_query_start() takes its
 * contents. */
struct cri_stats_query {
        struct nd_strings containers, sandboxes;
        unsigned parts; /* enum cri_usage_part */
        bool layers;
        bool networks;  /* of the sandboxes */
        bool processes; /* of the containers, from /proc of each process */
};

void cri_stats_query_done(struct cri_stats_query *question);

struct cri_stats_result {
        /* in the order of the query, without removed ones */
        nd_vector(struct cri_container_stats) containers;
        nd_vector(struct cri_sandbox_stats) sandboxes;
};

/* Runs once, from the loop; the result is freed when it returns. There is always a result: values
 * that could not be read are marked. */
typedef void (*cri_stats_callback)(const struct cri_stats_result *answer, void *userdata);

/* Takes the contents of the query and leaves it empty. */
struct cri_stats_operation;
void cri_stats_query_start(struct cri_stats *stats, struct cri_stats_query *question, cri_stats_callback callback,
                           void *userdata, struct cri_stats_operation **ret);

/* The callback is not called. nullptr is allowed. */
void cri_stats_query_cancel(struct cri_stats_operation *request);
