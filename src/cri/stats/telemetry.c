/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h */
#include "cri/stats/telemetry.h"

#include <string.h>

#include "base/clock.h"
#include "cri/bundle/bridge.h"
#include "cri/oci-runtime/selftest.h"
#include "sys/file.h"

#ifndef ND_VERSION
#define ND_VERSION "0"
#endif

enum {
        CODES = ND_UNAUTHENTICATED + 1,
        MEMORY_TEXT = 4096,
};

/* The names that gRPC's own metrics use. */
static const char *const codes[CODES] = {
        [ND_OK] = "OK",
        [ND_CANCELLED] = "Canceled",
        [ND_UNKNOWN] = "Unknown",
        [ND_INVALID] = "InvalidArgument",
        [ND_DEADLINE] = "DeadlineExceeded",
        [ND_NOT_FOUND] = "NotFound",
        [ND_EXISTS] = "AlreadyExists",
        [ND_DENIED] = "PermissionDenied",
        [ND_EXHAUSTED] = "ResourceExhausted",
        [ND_PRECONDITION] = "FailedPrecondition",
        [ND_ABORTED] = "Aborted",
        [ND_OUT_OF_RANGE] = "OutOfRange",
        [ND_UNIMPLEMENTED] = "Unimplemented",
        [ND_INTERNAL] = "Internal",
        [ND_UNAVAILABLE] = "Unavailable",
        [ND_DATA_LOSS] = "DataLoss",
        [ND_UNAUTHENTICATED] = "Unauthenticated",
};

/* Upper bounds in microseconds, and as Prometheus writes them. */
static const struct {
        uint64_t us;
        const char *seconds;
} buckets[] = {
        {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
        {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},  {1000000, "1"},
        {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"}, {60000000, "60"},
};

struct method {
        uint64_t ended[CODES];
        /* each call counts in one of them, or in none if it took longer */
        uint64_t within[nd_count_of(buckets)];
        uint64_t timed, sum_us;
};

enum pull_result { PULL_GOOD, PULL_BAD, PULL_ABANDONED, PULL_RESULTS };
static const char *const pull_results[PULL_RESULTS] = {"pulled", "failed", "abandoned"};

struct cri_telemetry {
        struct nd_map methods; /* name -> struct method * */
        struct method unknown;
        uint64_t pods[2][2]; /* [in a user namespace][started] */
        uint64_t pulls[PULL_RESULTS];
        uint64_t oom_scores_clamped;
        uint64_t bridges_started, bridges_failed;
};

struct cri_telemetry *cri_telemetry_new(void) {
        return nd_new(struct cri_telemetry);
}

void cri_telemetry_free(struct cri_telemetry *telemetry) {
        const struct nd_map_slot *slot;

        if (!telemetry)
                return;
        for (size_t at = 0; (slot = nd_map_next(&telemetry->methods, &at));)
                free(slot->value);
        nd_map_done(&telemetry->methods);
        free(telemetry);
}

/* ---- counting ---- */

static struct method *method_of(struct cri_telemetry *telemetry, const char *name, bool known) {
        struct method *method = known ? nd_map_get(&telemetry->methods, name) : &telemetry->unknown;

        if (!method && telemetry->methods.count >= TELEMETRY_METHODS)
                method = &telemetry->unknown;
        if (!method) {
                method = nd_new(struct method);
                (void) nd_map_put(&telemetry->methods, name, method);
        }
        return method;
}

void cri_telemetry_rpc(struct cri_telemetry *telemetry, const char *name, bool known, bool timed, enum nd_error_code code,
                       uint64_t duration_us) {
        struct method *method;

        if (!telemetry)
                return;
        method = method_of(telemetry, name, known);
        method->ended[(unsigned) code < CODES ? code : ND_UNKNOWN]++;
        if (!timed)
                return;
        method->timed++;
        method->sum_us += duration_us;
        for (size_t i = 0; i < nd_count_of(buckets); i++)
                if (duration_us <= buckets[i].us) {
                        method->within[i]++;
                        break;
                }
}

void cri_telemetry_pod(struct cri_telemetry *telemetry, bool user_namespace, bool started) {
        if (telemetry)
                telemetry->pods[user_namespace][started]++;
}

void cri_telemetry_bridges(struct cri_telemetry *telemetry, const struct cri_bridge_counts *counts) {
        if (!telemetry)
                return;
        telemetry->bridges_started += counts->started;
        telemetry->bridges_failed += counts->tried - counts->started;
}

void cri_telemetry_oom_score_clamped(struct cri_telemetry *telemetry) {
        if (telemetry)
                telemetry->oom_scores_clamped++;
}

void cri_telemetry_pull(struct cri_telemetry *telemetry, const struct nd_error *error) {
        if (telemetry)
                telemetry->pulls[error ? PULL_BAD : PULL_GOOD]++;
}

void cri_telemetry_pull_abandoned(struct cri_telemetry *telemetry) {
        if (telemetry)
                telemetry->pulls[PULL_ABANDONED]++;
}

/* ---- formatting ---- */

static void head(struct nd_text *text, const char *name, const char *type, const char *help) {
        nd_text_addf(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct nd_text *text, const char *name, const char *type, const char *help, uint64_t value) {
        head(text, name, type, help);
        nd_text_addf(text, "%s %llu\n", name, (unsigned long long) value);
}

static void add_codes(struct nd_text *text, const char *name, const struct method *method) {
        for (unsigned code = 0; code < CODES; code++)
                if (method->ended[code] > 0)
                        nd_text_addf(text, "nodens_cri_rpc_total{method=\"%s\",code=\"%s\"} %llu\n", name, codes[code],
                                     (unsigned long long) method->ended[code]);
}

static void add_durations(struct nd_text *text, const char *name, const struct method *method) {
        uint64_t so_far = 0;

        if (method->timed == 0)
                return;
        for (size_t i = 0; i < nd_count_of(buckets); i++) {
                so_far += method->within[i];
                nd_text_addf(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"%s\",le=\"%s\"} %llu\n", name,
                             buckets[i].seconds, (unsigned long long) so_far);
        }
        nd_text_addf(text, "nodens_cri_rpc_duration_seconds_bucket{method=\"%s\",le=\"+Inf\"} %llu\n", name,
                     (unsigned long long) method->timed);
        nd_text_addf(text, "nodens_cri_rpc_duration_seconds_sum{method=\"%s\"} %llu.%06llu\n", name,
                     (unsigned long long) (method->sum_us / ND_SECOND_US),
                     (unsigned long long) (method->sum_us % ND_SECOND_US));
        nd_text_addf(text, "nodens_cri_rpc_duration_seconds_count{method=\"%s\"} %llu\n", name,
                     (unsigned long long) method->timed);
}

static void add_rpcs(const struct cri_telemetry *telemetry, struct nd_text *text) {
        const struct nd_map_slot *slot;

        head(text, "nodens_cri_rpc_total", "counter", "Completed RPCs by method and code.");
        for (size_t at = 0; (slot = nd_map_next(&telemetry->methods, &at));)
                add_codes(text, slot->key, slot->value);
        add_codes(text, "unknown", &telemetry->unknown);
        head(text, "nodens_cri_rpc_duration_seconds", "histogram", "Duration of RPCs, without streaming ones.");
        for (size_t at = 0; (slot = nd_map_next(&telemetry->methods, &at));)
                add_durations(text, slot->key, slot->value);
}

static void add_counts(const struct cri_telemetry *telemetry, struct nd_text *text) {
        static const char *const users[] = {"host", "pod"};

        head(text, "nodens_cri_pods_started_total", "counter", "Pods started, by user namespace.");
        for (unsigned i = 0; i < nd_count_of(users); i++)
                nd_text_addf(text, "nodens_cri_pods_started_total{users=\"%s\"} %llu\n", users[i],
                             (unsigned long long) telemetry->pods[i][true]);
        head(text, "nodens_cri_pods_failed_total", "counter", "Pods that failed to start, by user namespace.");
        for (unsigned i = 0; i < nd_count_of(users); i++)
                nd_text_addf(text, "nodens_cri_pods_failed_total{users=\"%s\"} %llu\n", users[i],
                             (unsigned long long) telemetry->pods[i][false]);
        head(text, "nodens_cri_pulls_total", "counter", "Image pulls by result; abandoned: all of its callers have gone.");
        for (unsigned i = 0; i < PULL_RESULTS; i++)
                nd_text_addf(text, "nodens_cri_pulls_total{result=\"%s\"} %llu\n", pull_results[i],
                             (unsigned long long) telemetry->pulls[i]);
        number(text, "nodens_cri_oom_scores_clamped_total", "counter",
               "Containers whose OOM score is higher than requested, because nodens-cri may not lower it.",
               telemetry->oom_scores_clamped);
        number(text, "nodens_cri_bridges_started_total", "counter", "Starts of nodens-bridge for a volume of a pod.",
               telemetry->bridges_started);
        number(text, "nodens_cri_bridges_failed_total", "counter", "Starts of nodens-bridge that failed.",
               telemetry->bridges_failed);
}

static void add_objects(const struct cri_pod_table *pods, struct nd_text *text) {
        size_t sandboxes[2] = {}, containers[CONTAINER_UNKNOWN + 1] = {};
        static const char *const states[] = {"created", "running", "exited", "unknown"};
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));)
                if (cri_sandbox_is_shown(slot->value))
                        sandboxes[((const struct cri_sandbox *) slot->value)->state == SANDBOX_READY]++;
        for (size_t at = 0; (slot = nd_map_next(&pods->containers, &at));)
                if (cri_container_is_shown(slot->value))
                        containers[((const struct cri_container *) slot->value)->state]++;
        head(text, "nodens_cri_sandboxes", "gauge", "Pod sandboxes by state.");
        nd_text_addf(text, "nodens_cri_sandboxes{state=\"ready\"} %zu\nnodens_cri_sandboxes{state=\"notready\"} %zu\n",
                     sandboxes[true], sandboxes[false]);
        head(text, "nodens_cri_containers", "gauge", "Containers by state.");
        for (unsigned i = 0; i < nd_count_of(states); i++)
                nd_text_addf(text, "nodens_cri_containers{state=\"%s\"} %zu\n", states[i], containers[i]);
}

static void add_bridges(const struct cri_telemetry_view *view, struct nd_text *text) {
        static const char *const states[] = {
                [BRIDGE_SERVING] = "serving", [BRIDGE_DEAD] = "dead", [BRIDGE_UNKNOWN] = "unknown"};
        size_t counts[BRIDGE_STATES] = {};
        const struct nd_map_slot *slot;

        static_assert(nd_count_of(states) == BRIDGE_STATES);
        for (size_t at = 0; (slot = nd_map_next(&view->pods->sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;

                if (sandbox->this_boot && sandbox->request.user_namespace)
                        cri_bridge_count(view->config, sandbox, counts);
        }
        head(text, "nodens_cri_bridges", "gauge",
             "Volumes served by nodens-bridge, by state; dead: all its processes are gone.");
        for (unsigned i = 0; i < BRIDGE_STATES; i++)
                nd_text_addf(text, "nodens_cri_bridges{state=\"%s\"} %zu\n", states[i], counts[i]);
}

static void add_selftest(const struct cri_selftest *selftest, struct nd_text *text) {
        const char *handler;

        head(text, "nodens_cri_selftest", "gauge", "Whether a feature works on this node, from the self-test at start.");
        /* the first handler has two names */
        for (size_t i = 1; (handler = cri_selftest_handler(selftest, i)); i++)
                for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++)
                        nd_text_addf(text, "nodens_cri_selftest{handler=\"%s\",feature=\"%s\"} %d\n", handler,
                                     cri_selftest_name(feature), !cri_selftest_reason(selftest, handler, feature));
}

/* "VmRSS:      2508 kB" */
static uint64_t resident_bytes(void) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel("/proc/self/status", MEMORY_TEXT, &text);
        const char *found = error ? nullptr : strstr(text, "\nVmRSS:");

        return found ? strtoull(found + strlen("\nVmRSS:"), nullptr, 10) << 10 : 0;
}

void cri_telemetry_format_counts(const struct cri_telemetry *telemetry, struct nd_text *ret) {
        add_rpcs(telemetry, ret);
        add_counts(telemetry, ret);
}

void cri_telemetry_format(const struct cri_telemetry *telemetry, const struct cri_telemetry_view *view, struct nd_text *ret) {
        if (telemetry)
                cri_telemetry_format_counts(telemetry, ret);
        add_objects(view->pods, ret);
        add_bridges(view, ret);
        number(ret, "nodens_cri_pulls_running", "gauge", "Pulls in progress, including queued ones.", view->pulls);
        add_selftest(view->selftest, ret);
        number(ret, "process_resident_memory_bytes", "gauge", "Resident memory of nodens-cri in bytes.", resident_bytes());
        number(ret, "nodens_cri_uptime_seconds", "gauge", "Seconds since nodens-cri was started.",
               view->uptime_us / ND_SECOND_US);
        head(ret, "nodens_cri_build_info", "gauge", "Version of nodens-cri.");
        nd_text_addf(ret, "nodens_cri_build_info{version=\"%s\"} 1\n", ND_VERSION);
}
