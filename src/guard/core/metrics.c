/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/metrics.h"

#include <inttypes.h>

static const uint64_t limits_us[GUARD_BUCKETS] = {50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 200000, 1000000, 5000000};

void guard_metrics_review(struct guard_metrics *metrics, enum guard_flow flow, bool allowed) {
        metrics->reviews[flow][allowed]++;
}

void guard_metrics_time(struct guard_metrics *metrics, uint64_t microseconds) {
        size_t i = 0;

        while (i < GUARD_BUCKETS && microseconds > limits_us[i])
                i++;
        metrics->buckets[i]++;
        metrics->total_us += microseconds;
}

static void head(struct nd_text *text, const char *name, const char *type, const char *help) {
        nd_text_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void guard_metrics_value(struct nd_text *text, const char *name, const char *type, const char *help, uint64_t value) {
        head(text, name, type, help);
        nd_text_addf(text, "%s %" PRIu64 "\n", name, value);
}

static void print_times(const struct guard_metrics *metrics, struct nd_text *text) {
        uint64_t sum = 0;

        head(text, "nodens_guard_review_duration_seconds", "histogram", "Time from a complete request to its response.");
        for (size_t i = 0; i < GUARD_BUCKETS; i++) {
                sum += metrics->buckets[i];
                nd_text_addf(text, "nodens_guard_review_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
                             (double) limits_us[i] / 1e6, sum);
        }
        sum += metrics->buckets[GUARD_BUCKETS];
        nd_text_addf(text, "nodens_guard_review_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", sum);
        nd_text_addf(text, "nodens_guard_review_duration_seconds_sum %g\n", (double) metrics->total_us / 1e6);
        nd_text_addf(text, "nodens_guard_review_duration_seconds_count %" PRIu64 "\n", sum);
}

void guard_metrics_print(const struct guard_metrics *metrics, struct nd_text *text) {
        static const char *const flows[] = {
                [GUARD_FLOW_MUTATE] = "mutate",
                [GUARD_FLOW_VALIDATE] = "validate",
                [GUARD_FLOW_POD_SECURITY] = "pod-security",
                [GUARD_FLOW_FLOOR] = "floor",
                [GUARD_FLOW_AUTHORIZE] = "authorize",
        };
        static_assert(nd_count_of(flows) == GUARD_FLOWS);
        static const char *const ends[] = {"refused", "allowed"};

        head(text, "nodens_guard_reviews_total", "counter", "Reviews by flow and verdict.");
        for (size_t flow = 0; flow < GUARD_FLOWS; flow++)
                for (size_t end = 0; end < nd_count_of(ends); end++)
                        nd_text_addf(text, "nodens_guard_reviews_total{flow=\"%s\",verdict=\"%s\"} %" PRIu64 "\n", flows[flow],
                                     ends[end], metrics->reviews[flow][end]);
        guard_metrics_value(text, "nodens_guard_unreadable_total", "counter",
                            "Requests whose body is not a valid AdmissionReview.", metrics->unreadable);
        print_times(metrics, text);
}
