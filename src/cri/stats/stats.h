/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - what pods and containers use: questions of the kubelet, answered from the loop
 *
 * CPU, memory and the like are read for each answer, some dozens of cgroups in one turn of the loop. How much a container has written is found by walking
 * its writable layer, which can take long: one worker walks all of them, as often as somebody asks but not more than every ten seconds, and an
 * answer tells when it looked. Network counters are read by a worker that visits the pods' namespaces. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/pod-table.h"
#include "cri/stats/usage.h"

struct cri_config;
struct cri_stats;

/* Configuration and pods must outlive it. */
[[nodiscard]] struct cri_stats *cri_stats_new(sd_event *loop, const struct cri_config *config,
                                              const struct cri_pod_table *pods);
void cri_stats_free(struct cri_stats *stats);

struct cri_container_stats {
        char id[POD_ID + 1];                /* look it up again: it may have gone meanwhile */
        struct cri_usage usage;             /* .at == 0: it does not run, or its cgroup was gone */
        struct cri_tree_usage layer;        /* .at == 0: nobody has looked yet */
        struct cri_process_usage processes; /* .at == 0: not asked for */
};

struct cri_sandbox_stats {
        char id[POD_ID + 1];
        struct cri_usage usage; /* of the pod's cgroup, which the kubelet made; .at == 0: it has none */
        struct cri_network_usage network;
};

/* What is asked: ids, and whether layers and networks matter. Fill it and hand it over. */
struct cri_stats_query {
        struct nd_strings containers, sandboxes;
        unsigned parts; /* enum cri_usage_part */
        bool layers;
        bool networks;  /* of the sandboxes */
        bool processes; /* of the containers, each looked into */
};

void cri_stats_query_done(struct cri_stats_query *question);

struct cri_stats_result {
        nd_vector(struct cri_container_stats) containers; /* in the order of the question; those that are gone are left out */
        nd_vector(struct cri_sandbox_stats) sandboxes;
};

/* Runs once, from the loop; the answer is freed when it returns. There is always one: what could not be read says so. */
typedef void (*cri_stats_callback)(const struct cri_stats_result *answer, void *userdata);

/* Takes the question and leaves it empty. */
struct cri_stats_operation;
void cri_stats_query_start(struct cri_stats *stats, struct cri_stats_query *question, cri_stats_callback callback,
                           void *userdata, struct cri_stats_operation **ret);

/* The callback will not run. nullptr is fine. */
void cri_stats_query_cancel(struct cri_stats_operation *request);
