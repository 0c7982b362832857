/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-webhook.c - one review of pod security, from its bytes to its response
 *
 * Theory of operation
 *   Reviews of pods and of workload controllers are answered from the store, after a namespace that
 *   is missing there was fetched. When the labels of a namespace become stricter, its pods are
 *   scanned page by page for at most @scan_timeout_us, as the plugin does. The warning reports
 *   how many were checked. */
#include "guard/webhook/podsecurity-webhook.h"

#include "base/clock.h"
#include "guard/admission/podsecurity-admission.h"
#include "guard/admission/podsecurity-scan.h"
#include "guard/cluster/namespace-fetch.h"
#include "net/api-objects.h"

enum {
        PODS_PER_PAGE = 250,
        PAGE_BYTES = 32 << 20,
        RETRY_SECONDS = 1,
};

static constexpr uint64_t scan_timeout_us = 1 * ND_SECOND_US;

struct session {
        const struct guard_webhook *webhook;
        struct guard_exchange *exchange;
        uint64_t share; /* number of its client, for the API client's fair queue */
        struct nd_arena arena;
        struct guard_review review;
        struct guard_podsecurity_scan scan;
        uint64_t until_us;
        bool scans;          /* the namespace's pods */
        const char *failure; /* why the pods could not be scanned */
};

static void request_page(struct session *s, const char *continuation);

static void session_free(struct session *s) {
        guard_podsecurity_scan_done(&s->scan);
        nd_arena_done(&s->arena);
        free(s);
}

static void finish(struct session *s) {
        struct guard_response response;

        s->review.gates_off = guard_watches_gates_off(s->webhook->watches);
        guard_podsecurity_decide(&s->webhook->config->standards, s->webhook->store, &s->review, &s->arena, &response);
        if (s->failure)
                guard_response_warn(&response, s->failure);
        else if (s->scans)
                guard_podsecurity_scan_report(&s->scan, s->review.name, &s->arena, &response);
        guard_webhook_respond(s->webhook, s->exchange, GUARD_FLOW_POD_SECURITY, &s->review, &response);
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
                        s->scan.checked > 0 ? nullptr : "failed to list pods while checking new PodSecurity enforce level";
                finish(s);
                return;
        }
        guard_podsecurity_scan_add(&s->scan, page.items);
        if (*page.continuation && s->scan.checked < GUARD_SCAN_PODS && nd_clock_us() < s->until_us) {
                request_page(s, page.continuation);
                return;
        }
        if (*page.continuation)
                guard_podsecurity_scan_skip(&s->scan, (size_t) page.remaining);
        finish(s);
}

static void request_page(struct session *s, const char *continuation) {
        nd_autotext struct nd_text path = ND_TEXT(64 << 10);

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, s->review.name);
        nd_text_addf(&path, "/pods?limit=%u", (unsigned) PODS_PER_PAGE);
        if (*continuation) {
                nd_text_add(&path, "&continue=");
                nd_api_escape(&path, continuation);
        }
        (void) nd_api_send(s->webhook->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                      .timeout_us = scan_timeout_us,
                                                                      .ceiling = PAGE_BYTES,
                                                                      .share = s->share,
                                                                      .done = on_page,
                                                                      .userdata = s});
}

static void on_namespace([[maybe_unused]] const struct nd_error *error, void *userdata) {
        finish(userdata);
}

/* The API server chose the hook that enforces, by a label of the namespace that the watch has not
 * reported yet. */
static bool is_behind(const struct guard_store *store, const struct guard_review *review) {
        const struct guard_namespace *namespace = guard_store_namespace(store, review->namespace);

        return nd_streq(review->resource, "pods") && namespace && !namespace->has_enforce_label;
}

static void deny_for_now(struct session *s) {
        struct guard_response response = {};

        guard_response_deny(
                &response, 503, "ServiceUnavailable",
                nd_arena_format(&s->arena, "the labels of namespace '%s' are not known yet; try again", s->review.namespace));
        response.retry_s = RETRY_SECONDS;
        guard_webhook_respond(s->webhook, s->exchange, GUARD_FLOW_POD_SECURITY, &s->review, &response);
        session_free(s);
}

void guard_podsecurity_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange, bool enforces) {
        struct session *s = nd_new(struct session);
        enum guard_podsecurity_need need;

        s->webhook = webhook;
        s->exchange = exchange;
        s->share = guard_exchange_client(exchange);
        s->scan.standards = &webhook->config->standards;
        if (!guard_webhook_receive(webhook, exchange, &s->arena, &s->review)) {
                session_free(s);
                return;
        }
        if (enforces && is_behind(webhook->store, &s->review)) {
                deny_for_now(s);
                return;
        }
        need = guard_podsecurity_needs(&webhook->config->standards, webhook->store, &s->review, &s->arena, &s->scan.rule);
        if (need == GUARD_PODSECURITY_NEEDS_NAMESPACE) {
                guard_namespace_fetch(webhook->api, webhook->store, s->review.namespace, s->share, on_namespace, s);
        } else if (need == GUARD_PODSECURITY_NEEDS_PODS) {
                s->scans = true;
                s->scan.rule.ignores_user_namespaces =
                        guard_watches_gates_off(webhook->watches) & ND_FLOOR_BIT(ND_FLOOR_POD_SECURITY);
                s->until_us = nd_clock_us() + scan_timeout_us;
                request_page(s, "");
        } else {
                finish(s);
        }
}
