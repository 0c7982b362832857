/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.h - the guard's own metrics on /metrics, in Prometheus' text format */
#pragma once

#include <stdint.h>

#include "base/text.h"

/* Subject of a review. */
enum guard_flow {
        GUARD_FLOW_MUTATE,
        GUARD_FLOW_VALIDATE,
        GUARD_FLOW_POD_SECURITY,
        GUARD_FLOW_FLOOR,
        GUARD_FLOW_AUTHORIZE,
        GUARD_FLOWS,
};

enum {
        GUARD_BUCKETS = 12,
};

struct guard_metrics {
        uint64_t reviews[GUARD_FLOWS][2];    /* denied, allowed */
        uint64_t unreadable;                 /* bodies that are not a valid review */
        uint64_t buckets[GUARD_BUCKETS + 1]; /* of times; the last one is for longer times */
        uint64_t total_us;
};

void guard_metrics_review(struct guard_metrics *metrics, enum guard_flow flow, bool allowed);
void guard_metrics_time(struct guard_metrics *metrics, uint64_t microseconds);
void guard_metrics_print(const struct guard_metrics *metrics, struct nd_text *text);

/* One gauge or counter. */
void guard_metrics_value(struct nd_text *text, const char *name, const char *type, const char *help, uint64_t value);
