/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-reviews.c - one review of pod security, from its bytes to its answer
 *
 * Theory of operation
 *   Reviews of pods and of what makes pods are answered from the store, after a namespace that is missing there was fetched. A namespace whose
 *   labels become stricter has its pods looked at, page after page, for as long as a warning is worth waiting for: @CENSUS_US, as the plugin
 *   does. What was not seen until then is said in the warning. */
#include "base/clock.h"
#include "guard/admission/podsecurity-scan.h"
#include "guard/cluster/namespace-fetch.h"
#include "guard/daemon.h"
#include "net/api-objects.h"

enum {
        PODS_PER_PAGE = 250,
        PAGE_BYTES = 32 << 20,
        RETRY_SECONDS = 1,
};

#define CENSUS_US (1 * ND_SECOND_US)

struct session {
        struct guard_daemon *guard;
        struct guard_exchange *exchange;
        uint64_t share; /* of its client */
        struct nd_arena arena;
        struct guard_review review;
        struct guard_podsecurity_scan census;
        uint64_t until_us;
        bool counts;         /* the namespace's pods */
        const char *failure; /* why the pods could not be counted */
};

static void ask_page(struct session *s, const char *continuation);

static void session_free(struct session *s) {
        guard_podsecurity_scan_done(&s->census);
        nd_arena_done(&s->arena);
        free(s);
}

static void finish(struct session *s) {
        struct guard_response answer;

        guard_podsecurity_decide(&s->guard->config.standards, &s->guard->store, &s->review, &s->arena, &answer);
        if (s->failure)
                guard_response_warn(&answer, s->failure);
        else if (s->counts)
                guard_podsecurity_scan_report(&s->census, s->review.name, &s->arena, &answer);
        guard_webhook_respond(s->guard, s->exchange, GUARD_FLOW_POD_SECURITY, &s->review, &answer);
        session_free(s);
}

static void on_page(const struct nd_api_answer *answer, void *userdata) {
        nd_cleanup(nd_api_page_done) struct nd_api_page page = {};
        nd_autoerror struct nd_error *broken = nullptr;
        struct session *s = userdata;

        if (!answer->error)
                broken = nd_api_page_parse(answer->body, answer->length, &page);
        if (answer->error || broken) {
                s->failure =
                        s->census.checked > 0 ? nullptr : "failed to list pods while checking new PodSecurity enforce level";
                finish(s);
                return;
        }
        guard_podsecurity_scan_add(&s->census, page.items);
        if (*page.continuation && s->census.checked < GUARD_SCAN_PODS && nd_clock_us() < s->until_us) {
                ask_page(s, page.continuation);
                return;
        }
        if (*page.continuation)
                guard_podsecurity_scan_skip(&s->census, (size_t) page.remaining);
        finish(s);
}

static void ask_page(struct session *s, const char *continuation) {
        nd_autotext path = ND_TEXT(64 << 10);

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, s->review.name);
        nd_text_addf(&path, "/pods?limit=%u", (unsigned) PODS_PER_PAGE);
        if (*continuation) {
                nd_text_add(&path, "&continue=");
                nd_api_escape(&path, continuation);
        }
        (void) nd_api_send(s->guard->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                    .timeout_us = CENSUS_US,
                                                                    .ceiling = PAGE_BYTES,
                                                                    .share = s->share,
                                                                    .done = on_page,
                                                                    .userdata = s});
}

static void on_namespace([[maybe_unused]] const struct nd_error *error, void *userdata) {
        finish(userdata);
}

/* The API server chose the hook that enforces, by a label of the namespace that the watch has not told yet. */
static bool is_behind(const struct guard_daemon *guard, const struct guard_review *review) {
        const struct guard_namespace *namespace = guard_store_namespace(&guard->store, review->namespace);

        return nd_streq(review->resource, "pods") && namespace && !namespace->has_enforce_label;
}

static void refuse_for_now(struct session *s) {
        struct guard_response answer = {};

        guard_response_deny(
                &answer, 503, "ServiceUnavailable",
                nd_arena_format(&s->arena, "the labels of namespace '%s' are not known yet; try again", s->review.namespace));
        answer.retry_s = RETRY_SECONDS;
        guard_webhook_respond(s->guard, s->exchange, GUARD_FLOW_POD_SECURITY, &s->review, &answer);
        session_free(s);
}

void guard_podsecurity_webhook_handle(struct guard_daemon *guard, struct guard_exchange *exchange, bool enforces) {
        struct session *s = nd_new(struct session);
        enum guard_podsecurity_need want;

        s->guard = guard;
        s->exchange = exchange;
        s->share = guard_exchange_client(exchange);
        s->census.standards = &guard->config.standards;
        if (!guard_webhook_receive(guard, exchange, &s->arena, &s->review)) {
                session_free(s);
                return;
        }
        if (enforces && is_behind(guard, &s->review)) {
                refuse_for_now(s);
                return;
        }
        want = guard_podsecurity_needs(&guard->config.standards, &guard->store, &s->review, &s->arena, &s->census.rule);
        if (want == GUARD_PODSECURITY_NEEDS_NAMESPACE) {
                guard_namespace_fetch(guard, s->review.namespace, s->share, on_namespace, s);
        } else if (want == GUARD_PODSECURITY_NEEDS_PODS) {
                s->counts = true;
                s->until_us = nd_clock_us() + CENSUS_US;
                ask_page(s, "");
        } else {
                finish(s);
        }
}
