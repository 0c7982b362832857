/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - see report.h
 *
 * Theory of operation
 *   cri_report_touch() compares numbers that are at hand (objects in the pod table, the name of
 *   the network's configuration) with those of the last status, and on a difference arms a
 *   timer; the timer counts what the kubelet sees and sends the text. So a burst of requests
 *   costs one message. */
#include "cri/report.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cri/bundle/bundle.h"
#include "cri/core/remedy.h"
#include "cri/network/network.h"
#include "cri/oci-runtime/selftest.h"
#include "sys/notify.h"

static constexpr uint64_t interval_us = ND_SECOND_US;

struct cri_report {
        const struct cri_parts *parts;
        sd_event_source *timer; /* nullptr before the daemon is ready */
        size_t sandboxes, containers;
        char *network; /* "" = none */
        char *summary; /* as systemd has it */
};

struct cri_report *cri_report_new(const struct cri_parts *parts) {
        struct cri_report *report = nd_new(struct cri_report);

        *report = (struct cri_report) {.parts = parts, .network = nd_strdup(""), .summary = nd_strdup("")};
        return report;
}

void cri_report_free(struct cri_report *report) {
        if (!report)
                return;
        sd_event_source_disable_unref(report->timer);
        free(report->network);
        free(report->summary);
        free(report);
}

/* ---- warnings ---- */

static const struct {
        const char *name;
        const char *consequence;
} features[SELFTEST_FEATURES] = {
        [SELFTEST_OCI_RUNTIME] = {"containers", "no container of this handler can start"},
        [SELFTEST_READ_ONLY] = {"recursive read-only mounts", "pods with recursiveReadOnly: Enabled are refused"},
        [SELFTEST_USERNS] = {"user namespaces", "pods with hostUsers: false are refused"},
        [SELFTEST_HOST_NETWORK] = {"user namespaces on the host's network",
                                   "pods with hostUsers: false and hostNetwork: true are refused"},
};

static void warn_feature(const char *handler, enum cri_selftest_feature feature, const char *reason) {
        nd_autofree char *remedy =
                nd_format("%s until nodens-cri is restarted after a remedy: %s", features[feature].consequence,
                          cri_remedy_of(reason) ?: "'nodens check' shows what the node lacks");

        nd_log(feature == SELFTEST_OCI_RUNTIME ? ND_LOG_ERROR : ND_LOG_WARNING, "a feature does not work on this node",
               nd_field("handler", handler), nd_field("feature", features[feature].name), nd_field("reason", reason),
               nd_field("remedy", remedy));
}

static void warn_features(const struct cri_selftest *selftest, const char *handler) {
        for (enum cri_selftest_feature feature = 0; feature < SELFTEST_FEATURES; feature++) {
                const char *reason = cri_selftest_reason(selftest, handler, feature);

                if (reason)
                        warn_feature(handler, feature, reason);
        }
}

static void warn_seccomp(const char *path) {
        nd_autoerror struct nd_error *error = cri_bundle_check_seccomp(path);

        if (error)
                nd_log(ND_LOG_WARNING, "containers with the seccomp profile RuntimeDefault cannot start",
                       nd_field("file", path), nd_field("reason", nd_error_text(error)),
                       nd_field(
                               "remedy",
                               "install it (Debian: golang-github-containers-common), or set seccompProfile in " CRI_CONFIG_PATH));
}

void cri_report_warn(const struct cri_parts *parts) {
        const char *handler, *reason, *message;

        /* the first has two names */
        for (size_t i = 1; (handler = cri_selftest_handler(parts->selftest, i)); i++)
                warn_features(parts->selftest, handler);
        warn_seccomp(parts->config.seccomp_profile);
        (void) cri_network_ready(parts->network, &reason, &message); /* logs why it is not */
}

/* ---- status ---- */

static char *summarize(const struct cri_parts *parts) {
        bool containers_work = !cri_selftest_reason(parts->selftest, "", SELFTEST_OCI_RUNTIME),
             userns = !cri_selftest_reason(parts->selftest, "", SELFTEST_USERNS);
        size_t sandboxes = 0, containers = 0;

        cri_pod_table_count(&parts->pods, &sandboxes, &containers);
        return nd_format("%s: %zu %s, %zu %s; user namespaces %s; network %s",
                         containers_work ? "ready" : "no container can start", sandboxes, sandboxes == 1 ? "pod" : "pods",
                         containers, containers == 1 ? "container" : "containers", userns ? "yes" : "no",
                         cri_network_configuration(parts->network) ?: "none");
}

/* True if the numbers differ from those of the last call. */
static bool remember(struct cri_report *report) {
        const struct cri_pod_table *pods = &report->parts->pods;
        const char *network = cri_network_configuration(report->parts->network) ?: "";

        if (report->sandboxes == pods->sandboxes.count && report->containers == pods->containers.count &&
            nd_streq(report->network, network))
                return false;
        report->sandboxes = pods->sandboxes.count;
        report->containers = pods->containers.count;
        nd_strset(&report->network, network);
        return true;
}

static int on_timer([[maybe_unused]] sd_event_source *source, [[maybe_unused]] uint64_t usec, void *userdata) {
        struct cri_report *report = userdata;
        nd_autofree char *summary = summarize(report->parts);

        (void) remember(report);
        if (!nd_streq(summary, report->summary)) {
                nd_notify_status(summary);
                nd_strset(&report->summary, summary);
        }
        return 0;
}

void cri_report_touch(struct cri_report *report) {
        int armed = SD_EVENT_OFF;

        if (!report->timer || !remember(report))
                return;
        (void) sd_event_source_get_enabled(report->timer, &armed);
        if (armed == SD_EVENT_OFF && sd_event_source_set_time_relative(report->timer, interval_us) >= 0)
                (void) sd_event_source_set_enabled(report->timer, SD_EVENT_ONESHOT);
}

void cri_report_ready(struct cri_report *report, uint64_t start_us) {
        const struct cri_parts *parts = report->parts;
        nd_autofree char *us = nd_format("%llu", (unsigned long long) start_us), *summary = summarize(parts);

        if (sd_event_add_time_relative(parts->loop, &report->timer, CLOCK_MONOTONIC, interval_us, 0, on_timer, report) < 0)
                abort(); /* out of memory is the only possible failure */
        (void) sd_event_source_set_enabled(report->timer, SD_EVENT_OFF);
        (void) remember(report);
        nd_strset(&report->summary, summary);
        nd_log(ND_LOG_INFO, summary, nd_field("socket", parts->config.socket), nd_field("images", parts->config.images),
               nd_field("us", us));
        nd_notify_ready(summary);
}
