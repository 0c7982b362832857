/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - what the daemon counts of its own work, as Prometheus' text
 *
 * How long each RPC took and how it ended, pods that were started or not, pulls. What can be looked at instead of counted (objects, memory, the
 * self-test) is looked at when somebody asks. Served by scrape.h. */
#pragma once

#include "base/text.h"

struct pods;
struct selftest;
struct telemetry;

enum {
        TELEMETRY_CEILING = 1 << 20, /* bytes of all of it */
        TELEMETRY_METHODS = 128,
};

[[nodiscard]] struct telemetry *telemetry_new(void);
void telemetry_free(struct telemetry *telemetry);

/* All of these take nullptr: then nothing is counted. */

/* A call has ended; known says whether there is such a method, or else a peer could fill our memory with names. timed: it is no stream that
 * lasts as long as its reader likes. */
void telemetry_rpc(struct telemetry *telemetry, const char *method, bool known, bool timed, enum nd_code code,
                   uint64_t duration_us);
void telemetry_pod(struct telemetry *telemetry, bool user_namespace, bool started);
void telemetry_pull(struct telemetry *telemetry, const struct nd_error *error); /* also an import */
void telemetry_pull_abandoned(struct telemetry *telemetry);                     /* nobody waited for it any more */

void telemetry_format_counts(const struct telemetry *telemetry, struct nd_text *ret);

/* What is looked at when somebody asks. */
struct telemetry_view {
        uint64_t uptime_us;
        const struct pods *pods;
        size_t pulls; /* under way, waiting ones included */
        const struct selftest *selftest;
};
void telemetry_format(const struct telemetry *telemetry, const struct telemetry_view *view, struct nd_text *ret);
