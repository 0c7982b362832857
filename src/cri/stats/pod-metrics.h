/* SPDX-License-Identifier: Apache-2.0 */
/* pod-metrics.h - ListMetricDescriptors and ListPodSandboxMetrics: cAdvisor's names and labels,
 * built from stats.h
 *
 * Every sample has the labels container, id, image, name, namespace and pod with cAdvisor's
 * meaning: id is the cgroup, name the container's ID. Some have more. Samples of the pod itself
 * have an empty container and image. */
#pragma once

#include "cri/stats/stats.h"

enum {
        METRIC_BASE = 6,      /* labels of every sample */
        METRIC_MORE = 4,      /* additional labels of some samples */
        METRIC_SAMPLES = 128, /* maximum per container or pod */
};

struct cri_pod_metric {
        const char *name;
        const char *help;
        bool counter;                  /* otherwise a gauge */
        const char *more[METRIC_MORE]; /* names of additional labels, nullptr = none */
};

extern const char *const cri_pod_metric_base_labels[METRIC_BASE];

size_t cri_pod_metrics_count(void);
/* from 0; nullptr after the last one */
const struct cri_pod_metric *cri_pod_metrics_at(size_t number);

struct cri_pod_metric_sample {
        const struct cri_pod_metric *metric;
        uint64_t value;
        /* values of the additional labels; valid as long as the source of the sample */
        const char *more[METRIC_MORE];
};

/* Values of the base labels; valid as long as the objects. container nullptr = the pod itself. */
void cri_pod_metrics_labels(const struct cri_sandbox *sandbox, const struct cri_container *container,
                            const char *ret[static METRIC_BASE]);

/* How many metrics to return. A sample is mostly labels, about 350 bytes: all samples of 2,000
 * containers would be 40 MB, but a gRPC peer accepts 16 MiB per message. */
enum cri_pod_metric_detail {
        METRICS_CORE, /* used by alerts and billing */
        METRICS_ALL,
};

/* Returns the number of samples. */
size_t cri_pod_metrics_of_container(const struct cri_container *container, const struct cri_container_stats *stats,
                                    enum cri_pod_metric_detail detail,
                                    struct cri_pod_metric_sample ret[static METRIC_SAMPLES]);
size_t cri_pod_metrics_of_sandbox(const struct cri_sandbox_stats *stats, enum cri_pod_metric_detail detail,
                                  struct cri_pod_metric_sample ret[static METRIC_SAMPLES]);
