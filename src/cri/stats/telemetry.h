/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.h - the daemon's own metrics in Prometheus' text format
 *
 * Counts RPCs with duration and result, pods started and failed, bridges and pulls. Gauges
 * (objects, memory, the self-test) are read when the metrics are scraped. Served by
 * metrics-endpoint.h. */
#pragma once

#include "base/text.h"

struct cri_bridge_counts;
struct cri_config;
struct cri_pod_table;
struct cri_selftest;
struct cri_telemetry;

enum {
        TELEMETRY_CEILING = 1 << 20, /* of the whole text */
        TELEMETRY_METHODS = 128,
};

[[nodiscard]] struct cri_telemetry *cri_telemetry_new(void);
void cri_telemetry_free(struct cri_telemetry *telemetry);

/* All of these accept nullptr and then count nothing. */

/* Counts a completed call. known: the method exists; otherwise a peer could fill our memory with
 * names. timed: false for streams, which last as long as the client reads. */
void cri_telemetry_rpc(struct cri_telemetry *telemetry, const char *method, bool known, bool timed, enum nd_error_code code,
                       uint64_t duration_us);
void cri_telemetry_pod(struct cri_telemetry *telemetry, bool user_namespace, bool started);
/* the starts of nodens-bridge for one container */
void cri_telemetry_bridges(struct cri_telemetry *telemetry, const struct cri_bridge_counts *counts);
/* a container whose OOM score is higher than requested, because we may not lower it */
void cri_telemetry_oom_score_clamped(struct cri_telemetry *telemetry);
/* also an import */
void cri_telemetry_pull(struct cri_telemetry *telemetry, const struct nd_error *error);
/* all of its callers have gone */
void cri_telemetry_pull_abandoned(struct cri_telemetry *telemetry);

void cri_telemetry_format_counts(const struct cri_telemetry *telemetry, struct nd_text *ret);

/* Inputs that are read when the metrics are scraped. */
struct cri_telemetry_view {
        uint64_t uptime_us;
        const struct cri_config *config;
        const struct cri_pod_table *pods;
        size_t pulls; /* running, including queued ones */
        const struct cri_selftest *selftest;
};
void cri_telemetry_format(const struct cri_telemetry *telemetry, const struct cri_telemetry_view *view, struct nd_text *ret);
