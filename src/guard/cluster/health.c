/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - see health.h
 *
 * Theory of operation
 *   Modules report their problems here and withdraw them. The first problem, in the order of
 *   reason_of(), is the reason why the guard is not ready; without one the state of the watches is.
 *   Every change between ready and not ready is logged, a reason is repeated every
 *   @repeat_interval_us, and both are the STATUS= of the unit.
 * Invariant  an API server that accepts and refuses in turns causes a line every @log_interval_us
 *            at most, for each problem. */
#include "guard/cluster/health.h"

#include "base/clock.h"
#include "base/log.h"
#include "sys/notify.h"

static constexpr uint64_t tick_us = 5 * ND_SECOND_US;
static constexpr uint64_t repeat_interval_us = 60 * ND_SECOND_US;
static constexpr uint64_t log_interval_us = 10 * ND_SECOND_US;

bool guard_health_is_ready(const struct guard_health *h) {
        return !h->stops && guard_watches_are_ready(h->watches) && !h->problems[GUARD_PROBLEM_CREDENTIALS].text &&
               !h->problems[GUARD_PROBLEM_CERTIFICATE].text;
}

static const char *reason_of(const struct guard_health *h) {
        const char *trouble = guard_watches_trouble(h->watches);

        if (h->problems[GUARD_PROBLEM_CREDENTIALS].text)
                return h->problems[GUARD_PROBLEM_CREDENTIALS].text;
        if (guard_watches_are_ready(h->watches) && h->problems[GUARD_PROBLEM_CERTIFICATE].text)
                return h->problems[GUARD_PROBLEM_CERTIFICATE].text;
        if (h->problems[GUARD_PROBLEM_CONTACT].text)
                return h->problems[GUARD_PROBLEM_CONTACT].text;
        if (trouble)
                return trouble;
        return h->watches->ready
                       ? "no contact with the API server: reviews are denied until namespaces and constraints are known "
                         "to be current"
                       : "the API server has not sent all lists yet";
}

/* ---- reports ---- */

static void set_status(struct guard_health *h, const char *status) {
        if (h->status && nd_streq(h->status, status))
                return;
        nd_strset(&h->status, status);
        nd_notify_status(status);
}

static char *summary(const struct guard_health *h) {
        const struct guard_store *store = h->watches->settings.store;

        if (h->watches->settings.kinds == GUARD_KINDS_OF_AUTHORIZER)
                return nd_format("ready: %zu nodes, %zu below the version floor", store->nodes.map.count,
                                 guard_store_count_below(store));
        return nd_format("ready: %zu namespaces, %zu constraints", store->namespaces.map.count, store->constraints.map.count);
}

static void report_ready(struct guard_health *h) {
        nd_autofree char *text = summary(h);

        if (!h->said_ready)
                nd_log(ND_LOG_INFO, text);
        h->said_ready = true;
        set_status(h, text);
}

static void report_reason(struct guard_health *h) {
        nd_autofree char *text = nd_format("not ready: %s", reason_of(h));
        uint64_t now_us = nd_clock_us();
        bool is_new = h->said_ready && (h->not_ready_us == 0 || now_us - h->not_ready_us >= log_interval_us);

        if (is_new || (!h->said_ready && now_us - h->reason_us >= repeat_interval_us)) {
                nd_log(ND_LOG_WARNING, text);
                h->reason_us = now_us;
                h->not_ready_us = is_new ? now_us : h->not_ready_us;
                h->said_ready = false;
        }
        set_status(h, text);
}

static void report(struct guard_health *h) {
        if (h->stops)
                set_status(h, "stopping: answering reviews that still arrive");
        else if (guard_health_is_ready(h))
                report_ready(h);
        else
                report_reason(h);
}

void guard_health_update(struct guard_health *h) {
        if (!h->stops && guard_health_is_ready(h) != h->said_ready)
                report(h);
}

void guard_health_stop(struct guard_health *h) {
        h->stops = true;
        report(h);
}

/* ---- problems ---- */

static void log_problem(struct guard_health *h, enum guard_problem problem) {
        uint64_t now_us = nd_clock_us();

        if (h->problems[problem].logged_us > 0 && now_us - h->problems[problem].logged_us < log_interval_us)
                return;
        h->problems[problem].logged_us = h->reason_us = now_us;
        nd_log(ND_LOG_WARNING, h->problems[problem].text);
}

void guard_health_set(struct guard_health *h, enum guard_problem problem, const char *text, bool at_once) {
        bool is_new = text && !h->problems[problem].text;

        if (!text && !h->problems[problem].text)
                return;
        if (text)
                nd_strset(&h->problems[problem].text, text);
        else
                free(nd_take_ptr(h->problems[problem].text));
        /* the end of readiness is a line of its own, with the same text */
        if (is_new && at_once && (!h->said_ready || guard_health_is_ready(h)))
                log_problem(h, problem);
        report(h);
}

static int on_tick(sd_event_source *source, [[maybe_unused]] uint64_t now, void *userdata) {
        (void) sd_event_source_set_time_relative(source, tick_us);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        report(userdata);
        return 0;
}

struct nd_error *guard_health_start(struct guard_health *h, sd_event *loop, const struct guard_watches *watches) {
        int r = sd_event_add_time_relative(loop, &h->timer, CLOCK_MONOTONIC, tick_us, 0, on_tick, h);

        h->watches = watches;
        h->reason_us = nd_clock_us();
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "start the timer of the guard's state") : nullptr;
}

void guard_health_done(struct guard_health *h) {
        h->timer = sd_event_source_disable_unref(h->timer);
        for (size_t i = 0; i < GUARD_PROBLEMS; i++)
                free(nd_take_ptr(h->problems[i].text));
        free(nd_take_ptr(h->status));
}
