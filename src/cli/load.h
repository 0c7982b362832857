/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - what pods and containers use: two looks at their counters, and the rate between them
 *
 * The daemon tells how much CPU time was used since the start; how much is used now is the difference of two looks. The names come from the list of pods. */
#pragma once

#include <nodens.pb-c.h>

#include "base/error.h"
#include "base/vector.h"

/* One line of a table: a container, or a pod as a whole. Names and ids belong to the look. */
struct load_row {
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

typedef nd_vector(struct load_row) load_rows;

struct look {
        ProtobufCMessage *pods, *usage;
};

[[nodiscard]] struct nd_error *look_take(const char *socket, struct look *ret);
void look_done(struct look *look);

/* The lines of a look, by name; before may be empty, and no rate is known then. */
void load_of_containers(const struct look *before, const struct look *now, load_rows *ret);
void load_of_pods(const struct look *before, const struct look *now, load_rows *ret);

/* The most CPU first; what has no rate last. */
void load_sort_by_cpu(load_rows *rows);

/* The rate between two looks at one counter; false when there is none, as for a container that was started between them. */
[[nodiscard]] bool load_rate(const Nodens__V1__Usage *before, const Nodens__V1__Usage *now, uint64_t *ret);
