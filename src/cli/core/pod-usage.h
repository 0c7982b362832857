/* SPDX-License-Identifier: Apache-2.0 */
/* pod-usage.h - resource usage of pods and containers, from two samples of their counters
 *
 * The daemon reports the CPU time since the start; the current use is the difference of two
 * samples. The names come from the list of pods. */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"
#include "base/vector.h"

/* One row of a table: a container or a whole pod. The sample owns names and IDs. */
struct cli_usage_row {
        const Nodens__V1__PodEntry *pod;
        const Nodens__V1__ContainerEntry *container; /* nullptr: a whole pod */
        const Nodens__V1__Usage *usage;
        bool has_rate;
        uint64_t nano_cores; /* nanoseconds of CPU per second */
        bool has_disk;       /* for containers */
        uint64_t disk;
        bool has_network; /* for pods */
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

/* Makes the rows of a sample, sorted by name. before may be empty; then there are no rates. */
void cli_usage_of_containers(const struct cli_usage_sample *before, const struct cli_usage_sample *now,
                             struct cli_usage_rows *ret);
void cli_usage_of_pods(const struct cli_usage_sample *before, const struct cli_usage_sample *now, struct cli_usage_rows *ret);

/* Sorts by CPU use, highest first; rows without a rate come last. */
void cli_usage_sort_by_cpu(struct cli_usage_rows *rows);

/* Computes the rate between two samples of one counter; false when there is none, e.g. for a
 * container started in between. */
[[nodiscard]] bool cli_usage_rate(const Nodens__V1__Usage *before, const Nodens__V1__Usage *now, uint64_t *ret);
