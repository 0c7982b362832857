/* SPDX-License-Identifier: Apache-2.0 */
/* scc-webhook.c - one review of security context constraints, from its bytes to its response
 *
 * Theory of operation
 *   Most reviews are decided at once from memory. Missing facts are fetched: a namespace that the
 *   watch has not reported yet, the pod of an exec, an access check that the RBAC index cannot
 *   affirm. advance() is called after every fetch and starts over: deciding twice costs
 *   microseconds, and nothing that was true before the wait is relied upon after it. Access reviews
 *   are requested in the order of constraints and in batches, so a user allowed by the first
 *   constraint costs one query, not 1,000. All memory of a review is in its arena. A review that
 *   lacks a fact is denied with a response that can be retried, or allowed if it could only cause a
 *   warning. */
#include "guard/webhook/scc-webhook.h"

#include "base/assert.h"
#include "base/clock.h"
#include "guard/admission/scc-admission.h"
#include "guard/cluster/namespace-fetch.h"

enum {
        ROUNDS = 8,
        FIRST_BATCH = 32, /* access checks; twice as many each time after */
        OBJECT_BYTES = 8 << 20,
};

static constexpr uint64_t fetch_timeout_us = 2 * ND_SECOND_US;

struct session {
        const struct guard_webhook *webhook;
        struct guard_exchange *exchange;
        uint64_t share; /* number of its client, for the API client's fair queue */
        struct nd_arena arena;
        struct guard_review review;
        struct guard_admission admission;
        unsigned pending, rounds;
        bool fetched_namespace, fetched_pod;
        const char *failure; /* why a fetch failed */
};

/* A SubjectAccessReview in flight. */
struct pending_review {
        struct session *session;
        size_t number;
};

static void advance(struct session *s);

static void session_free(struct session *s) {
        guard_admission_done(&s->admission);
        nd_arena_done(&s->arena);
        free(s);
}

static void fail(struct session *s, const struct nd_error *error) {
        s->failure = nd_arena_strdup(&s->arena, nd_error_text(error));
}

static void finish(struct session *s, struct guard_response *response) {
        if (s->failure && guard_admission_only_warns(&s->admission)) {
                /* a refusal for lack of facts is not worth a warning */
                *response = (struct guard_response) {.allowed = true};
                guard_response_audit(response, "error", s->failure);
        } else if (!response->allowed && s->failure) {
                guard_response_deny(response, 503, "ServiceUnavailable",
                                    nd_arena_format(&s->arena, "cannot decide the review: %s", s->failure));
                response->retry_s = GUARD_RETRY_SECONDS;
        }
        guard_webhook_respond(s->webhook, s->exchange,
                              s->admission.phase == GUARD_VALIDATING ? GUARD_FLOW_VALIDATE : GUARD_FLOW_MUTATE, &s->review,
                              response);
        session_free(s);
}

/* ---- fetching ---- */

static void on_namespace(const struct nd_error *error, void *userdata) {
        struct session *s = userdata;

        if (error)
                fail(s, error);
        advance(s);
}

static void on_pod(const struct nd_api_answer *answer, void *userdata) {
        nd_autoerror struct nd_error *error = nullptr;
        struct session *s = userdata;
        struct nd_pod pod = {};

        if (!answer->error)
                error = nd_pod_decode(answer->body, answer->length, &s->arena, &pod);
        if (!answer->error && !error) {
                s->admission.live = nd_arena_new(&s->arena, struct nd_pod);
                *s->admission.live = pod;
        } else if (answer->status != 404) {
                fail(s, answer->error ? answer->error : error);
        }
        advance(s);
}

static void fetch_pod(struct session *s) {
        nd_autotext struct nd_text path = ND_TEXT(4096);

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, s->review.namespace);
        nd_text_add(&path, "/pods/");
        nd_api_escape(&path, s->review.name);
        (void) nd_api_send(s->webhook->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                      .timeout_us = fetch_timeout_us,
                                                                      .ceiling = OBJECT_BYTES,
                                                                      .share = s->share,
                                                                      .done = on_pod,
                                                                      .userdata = s});
}

static void on_access_review(bool allowed, const struct nd_error *error, void *userdata) {
        struct pending_review *pending = userdata;
        struct session *s = pending->session;
        struct guard_access_check *check = &s->admission.checks.items[pending->number];

        free(pending);
        check->answered = true;
        check->allowed = allowed;
        if (error)
                fail(s, error);
        nd_assert(s->pending > 0);
        if (--s->pending == 0)
                advance(s);
}

static struct nd_error *request_one(struct session *s, size_t number) {
        const struct guard_webhook *webhook = s->webhook;
        struct guard_access_check *check = &s->admission.checks.items[number];
        const struct guard_subject *who = check->service_account ? &s->admission.service_account : &s->admission.user;
        struct pending_review *pending;
        struct nd_error *error;

        check->answered = guard_access_reviews_lookup(webhook->access_reviews, who, s->review.namespace, check->constraint,
                                                      webhook->rbac->changes, &check->allowed);
        if (check->answered)
                return nullptr;
        pending = nd_new(struct pending_review);
        *pending = (struct pending_review) {.session = s, .number = number};
        error = guard_access_reviews_request(webhook->access_reviews, who, s->review.namespace, check->constraint, s->share,
                                             on_access_review, pending);
        if (error)
                free(pending);
        else
                s->pending++;
        return error;
}

/* Resolves open checks from the cache, and requests access reviews for the rest. */
static void request_reviews(struct session *s) {
        nd_autoerror struct nd_error *error = nullptr;

        for (size_t i = 0; i < s->admission.checks.count && !error; i++)
                if (!s->admission.checks.items[i].answered)
                        error = request_one(s, i);
        if (error)
                fail(s, error);
}

/* ---- the decision ---- */

static void decide(struct session *s) {
        struct guard_response response;

        for (; s->rounds < ROUNDS; s->rounds++) {
                s->review.gates_off = guard_watches_gates_off(s->webhook->watches);
                s->admission.rbac_is_fresh = guard_watches_have_fresh_rbac(s->webhook->watches);
                s->admission.rbac_decides =
                        s->webhook->config->rbac_only && guard_watches_have_whole_rbac(s->webhook->watches);
                guard_admission_decide(&s->admission, &response);
                s->admission.batch *= 2;
                if (!guard_admission_is_open(&s->admission)) {
                        finish(s, &response);
                        return;
                }
                if (s->failure)
                        break; /* after a failed query the API server is not queried again */
                request_reviews(s);
                if (s->pending > 0)
                        return; /* on_access_review() continues */
        }
        if (!s->failure)
                s->failure = "constraints or roles changed too often while the review was decided";
        response.allowed = false;
        finish(s, &response);
}

static void advance(struct session *s) {
        enum guard_admission_need need = guard_admission_needs(&s->admission);

        if (need == GUARD_ADMISSION_NEEDS_NAMESPACE && !s->fetched_namespace) {
                s->fetched_namespace = true;
                guard_namespace_fetch(s->webhook->api, s->webhook->store, s->review.namespace, s->share, on_namespace, s);
        } else if (need == GUARD_ADMISSION_NEEDS_POD && !s->fetched_pod) {
                s->fetched_pod = true;
                fetch_pod(s);
        } else if (need == GUARD_ADMISSION_NEEDS_POD && s->failure) {
                struct guard_response response = {};

                finish(s, &response);
        } else {
                decide(s);
        }
}

void guard_scc_webhook_handle(const struct guard_webhook *webhook, struct guard_exchange *exchange, bool validating,
                              enum guard_mode mode) {
        struct session *s = nd_new(struct session);

        s->webhook = webhook;
        s->exchange = exchange;
        s->share = guard_exchange_client(exchange);
        if (!guard_webhook_receive(webhook, exchange, &s->arena, &s->review)) {
                session_free(s);
                return;
        }
        s->admission = (struct guard_admission) {.store = webhook->store,
                                                 .rbac = webhook->rbac,
                                                 .host_network_gate = webhook->config->host_network,
                                                 .window = webhook->config->ids_per_pod,
                                                 .phase = validating ? GUARD_VALIDATING : GUARD_MUTATING,
                                                 .hook_mode = mode,
                                                 .review = &s->review,
                                                 .batch = FIRST_BATCH,
                                                 .arena = &s->arena};
        advance(s);
}
