/* SPDX-License-Identifier: Apache-2.0 */
/* pod-metrics.h - ListMetricDescriptors and ListPodSandboxMetrics: cAdvisor's names and labels, made from stats.h
 *
 * Every sample has the labels container, id, image, name, namespace and pod, as cAdvisor gives them: id is the cgroup, name the container's id. Some
 * have more. A pod's own samples have an empty container and image. */
#pragma once

#include "cri/stats/stats.h"

enum {
        METRIC_BASE = 6,      /* labels that all have */
        METRIC_MORE = 4,      /* labels that some have besides */
        METRIC_SAMPLES = 128, /* most of one container or pod */
};

struct cri_pod_metric {
        const char *name;
        const char *help;
        bool counter;                  /* otherwise a gauge */
        const char *more[METRIC_MORE]; /* names of further labels, nullptr = none */
};

extern const char *const cri_pod_metric_base_labels[METRIC_BASE];

size_t cri_pod_metrics_count(void);
const struct cri_pod_metric *cri_pod_metrics_at(size_t number); /* from 0; nullptr past the last one */

struct cri_pod_metric_sample {
        const struct cri_pod_metric *metric;
        uint64_t value;
        const char *more[METRIC_MORE]; /* values of the further labels; they live as long as what the sample was made from */
};

/* Values of the base labels; they live as long as the objects. container nullptr = the pod itself. */
void cri_pod_metrics_labels(const struct cri_sandbox *sandbox, const struct cri_container *container,
                            const char *ret[static METRIC_BASE]);

/* How much is told. A sample is mostly labels, some 350 bytes: all of 2,000 containers would be 40 MB, of which a peer reads 16 MiB at once. */
enum cri_pod_metric_detail {
        METRICS_CORE, /* what alerts and bills are made of */
        METRICS_ALL,
};

/* Returns how many there are. */
size_t cri_pod_metrics_of_container(const struct cri_container *container, const struct cri_container_stats *stats,
                                    enum cri_pod_metric_detail detail,
                                    struct cri_pod_metric_sample ret[static METRIC_SAMPLES]);
size_t cri_pod_metrics_of_sandbox(const struct cri_sandbox_stats *stats, enum cri_pod_metric_detail detail,
                                  struct cri_pod_metric_sample ret[static METRIC_SAMPLES]);
