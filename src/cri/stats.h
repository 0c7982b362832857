/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - what pods and containers use: questions of the kubelet, answered from the loop
 *
 * CPU, memory and the like are read for each answer, some dozens of cgroups in one turn of the loop. How much a container has written is found by walking
 * its writable layer, which can take long: one worker walks all of them, as often as somebody asks but not more than every ten seconds, and an
 * answer tells when it looked. Network counters are read by a worker that visits the pods' namespaces. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/pods.h"
#include "cri/usage.h"

struct cri_config;
struct stats;

/* Configuration and pods must outlive it. */
[[nodiscard]] struct stats *stats_new(sd_event *loop, const struct cri_config *config, const struct pods *pods);
void stats_free(struct stats *stats);

struct container_stats {
        char id[POD_ID + 1];            /* look it up again: it may have gone meanwhile */
        struct usage usage;             /* .at == 0: it does not run, or its cgroup was gone */
        struct tree_usage layer;        /* .at == 0: nobody has looked yet */
        struct process_usage processes; /* .at == 0: not asked for */
};

struct sandbox_stats {
        char id[POD_ID + 1];
        struct usage usage; /* of the pod's cgroup, which the kubelet made; .at == 0: it has none */
        struct network_usage network;
};

/* What is asked: ids, and whether layers and networks matter. Fill it and hand it over. */
struct stats_question {
        struct nd_strings containers, sandboxes;
        unsigned parts; /* enum usage_part */
        bool layers;
        bool networks;  /* of the sandboxes */
        bool processes; /* of the containers, each looked into */
};

void stats_question_done(struct stats_question *question);

struct stats_answer {
        nd_vector(struct container_stats) containers; /* in the order of the question; those that are gone are left out */
        nd_vector(struct sandbox_stats) sandboxes;
};

/* Runs once, from the loop; the answer is freed when it returns. There is always one: what could not be read says so. */
typedef void (*stats_callback)(const struct stats_answer *answer, void *userdata);

/* Takes the question and leaves it empty. */
struct stats_request;
void stats_ask(struct stats *stats, struct stats_question *question, stats_callback callback, void *userdata,
               struct stats_request **ret);

/* The callback will not run. nullptr is fine. */
void stats_cancel(struct stats_request *request);
