/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - what the daemon counts of its own work, as Prometheus' text
 *
 * How long each RPC took and how it ended, pods that were started or not, pulls. What can be looked at instead of counted (objects, memory, the
 * self-test) is looked at when somebody asks. Served by metrics-endpoint.h. */
#pragma once

#include "base/text.h"

struct cri_pod_table;
struct cri_selftest;
struct cri_telemetry;

enum {
        TELEMETRY_CEILING = 1 << 20, /* bytes of all of it */
        TELEMETRY_METHODS = 128,
};

[[nodiscard]] struct cri_telemetry *cri_telemetry_new(void);
void cri_telemetry_free(struct cri_telemetry *telemetry);

/* All of these take nullptr: then nothing is counted. */

/* A call has ended; known says whether there is such a method, or else a peer could fill our memory with names. timed: it is no stream that
 * lasts as long as its reader likes. */
void cri_telemetry_rpc(struct cri_telemetry *telemetry, const char *method, bool known, bool timed, enum nd_error_code code,
                       uint64_t duration_us);
void cri_telemetry_pod(struct cri_telemetry *telemetry, bool user_namespace, bool started);
void cri_telemetry_pull(struct cri_telemetry *telemetry, const struct nd_error *error); /* also an import */
void cri_telemetry_pull_abandoned(struct cri_telemetry *telemetry);                     /* nobody waited for it any more */

void cri_telemetry_format_counts(const struct cri_telemetry *telemetry, struct nd_text *ret);

/* What is looked at when somebody asks. */
struct cri_telemetry_view {
        uint64_t uptime_us;
        const struct cri_pod_table *pods;
        size_t pulls; /* under way, waiting ones included */
        const struct cri_selftest *selftest;
};
void cri_telemetry_format(const struct cri_telemetry *telemetry, const struct cri_telemetry_view *view, struct nd_text *ret);
