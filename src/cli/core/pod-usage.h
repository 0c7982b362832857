/* SPDX-License-Identifier: Apache-2.0 */
/* pod-usage.h - resource usage of pods and containers: two samples of their counters, and the rate between them
 *
 * The daemon reports the CPU time since the start; the current use is the difference of two samples. The names come from the list of pods. */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"
#include "base/vector.h"

/* One line of a table: a container, or a pod as a whole. Names and ids belong to the sample. */
struct cli_usage_row {
        const Nodens__V1__PodEntry *pod;
        const Nodens__V1__ContainerEntry *container; /* nullptr: the pod */
        const Nodens__V1__Usage *usage;
        bool has_rate;
        uint64_t nano_cores; /* nanoseconds of CPU in a second */
        bool has_disk;       /* containers */
        uint64_t disk;
        bool has_network; /* pods */
        uint64_t received, sent;
};

struct cli_usage_rows { /* see base/vector.h */
        struct cli_usage_row *items;
        size_t count, capacity;
};

struct cli_usage_sample {
        ProtobufCMessage *pods, *usage;
};

[[nodiscard]] struct nd_error *cli_usage_sample_take(const char *socket, struct cli_usage_sample *ret);
void cli_usage_sample_done(struct cli_usage_sample *sample);

void cli_usage_rows_done(struct cli_usage_rows *rows);

/* The rows of a sample, by name; before may be empty, and no rate is known then. */
void cli_usage_of_containers(const struct cli_usage_sample *before, const struct cli_usage_sample *now,
                             struct cli_usage_rows *ret);
void cli_usage_of_pods(const struct cli_usage_sample *before, const struct cli_usage_sample *now, struct cli_usage_rows *ret);

/* The most CPU first; what has no rate last. */
void cli_usage_sort_by_cpu(struct cli_usage_rows *rows);

/* The rate between two samples of one counter; false when there is none, as for a container that was started between them. */
[[nodiscard]] bool cli_usage_rate(const Nodens__V1__Usage *before, const Nodens__V1__Usage *now, uint64_t *ret);
