/* SPDX-License-Identifier: Apache-2.0 */
/* reviews.c - one review, from its bytes to its answer
 *
 * Theory of operation
 *   Most reviews are answered at once from memory. What is missing is fetched: a namespace that the watch has not told yet, the pod that
 *   somebody wants to exec into, a right that the index cannot affirm. advance() is called whenever something has come, and begins again
 *   from the start: deciding twice costs microseconds, and nothing that was true before the wait is relied upon after it.
 *   Rights are asked about in the order of constraints, some at a time: whoever may use the first of 500 costs the API server no thousand questions.
 *   Everything of a review is in its arena and goes with it. An answer that had to do without a fact is a refusal that can be retried. */
#include "guard/admission/scc-admission.h"
#include "guard/cluster/namespace-fetch.h"
#include "guard/daemon.h"

enum {
        ROUNDS = 8,
        FIRST_BATCH = 32, /* of questions; twice as many each time after */
        OBJECT_BYTES = 8 << 20,
};

#define FETCH_TIMEOUT_US (2 * UINT64_C(1000000))

struct session {
        struct guard_daemon *guard;
        struct guard_exchange *exchange;
        uint64_t share; /* of its client */
        struct nd_arena arena;
        struct guard_review review;
        struct guard_admission admission;
        unsigned pending, rounds;
        bool fetched_namespace, fetched_pod;
        const char *failure; /* why something could not be fetched */
};

struct errand { /* a question on its way */
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

static void finish(struct session *s, struct guard_response *answer) {
        if (!answer->allowed && s->failure) {
                guard_response_deny(answer, 503, "ServiceUnavailable",
                                    nd_arena_format(&s->arena, "cannot be decided: %s", s->failure));
                answer->retry_s = GUARD_RETRY_SECONDS;
        }
        guard_webhook_respond(s->guard, s->exchange,
                              s->admission.phase == GUARD_VALIDATING ? GUARD_FLOW_VALIDATE : GUARD_FLOW_MUTATE, &s->review,
                              answer);
        session_free(s);
}

/* ---- what is fetched */

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
        nd_autotext path = ND_TEXT(4096);

        nd_text_add(&path, "/api/v1/namespaces/");
        nd_api_escape(&path, s->review.namespace);
        nd_text_add(&path, "/pods/");
        nd_api_escape(&path, s->review.name);
        (void) nd_api_send(s->guard->api, &(struct nd_api_request) {.path = nd_text_get(&path),
                                                                    .timeout_us = FETCH_TIMEOUT_US,
                                                                    .ceiling = OBJECT_BYTES,
                                                                    .share = s->share,
                                                                    .done = on_pod,
                                                                    .userdata = s});
}

static void on_right(bool allowed, const struct nd_error *error, void *userdata) {
        struct errand *errand = userdata;
        struct session *s = errand->session;
        struct guard_access_check *question = &s->admission.questions.items[errand->number];

        free(errand);
        question->answered = true;
        question->allowed = allowed;
        if (error)
                fail(s, error);
        if (--s->pending == 0)
                advance(s);
}

static struct nd_error *ask_one(struct session *s, size_t number) {
        struct guard_daemon *guard = s->guard;
        struct guard_access_check *q = &s->admission.questions.items[number];
        const struct guard_subject *who = q->service_account ? &s->admission.service_account : &s->review.user;
        struct errand *errand;
        struct nd_error *error;

        q->answered = guard_access_reviews_lookup(guard->rights, who, s->review.namespace, q->constraint, guard->rbac.changes,
                                                  &q->allowed);
        if (q->answered)
                return nullptr;
        errand = nd_new(struct errand);
        *errand = (struct errand) {.session = s, .number = number};
        error = guard_access_reviews_request(guard->rights, who, s->review.namespace, q->constraint, s->share, on_right,
                                             errand);
        if (error)
                free(errand);
        else
                s->pending++;
        return error;
}

/* Answers open questions from memory, and asks about the others. */
static void ask(struct session *s) {
        nd_autoerror struct nd_error *error = nullptr;

        for (size_t i = 0; i < s->admission.questions.count && !error; i++)
                if (!s->admission.questions.items[i].answered)
                        error = ask_one(s, i);
        if (error)
                fail(s, error);
}

/* ---- the way */

static void decide(struct session *s) {
        struct guard_response answer;

        for (; s->rounds < ROUNDS; s->rounds++) {
                s->admission.rbac_is_fresh = guard_watches_have_fresh_rbac(s->guard);
                s->admission.rbac_decides = s->guard->config.rbac_only && guard_watches_have_whole_rbac(s->guard);
                guard_admission_decide(&s->admission, &answer);
                s->admission.batch *= 2;
                if (!guard_admission_is_open(&s->admission)) {
                        finish(s, &answer);
                        return;
                }
                if (s->failure)
                        break; /* who did not answer these questions is not asked more */
                ask(s);
                if (s->pending > 0)
                        return; /* on_right() goes on */
        }
        if (!s->failure)
                s->failure = "the cluster's constraints change too fast";
        answer.allowed = false;
        finish(s, &answer);
}

static void advance(struct session *s) {
        enum guard_admission_need want = guard_admission_needs(&s->admission);

        if (want == GUARD_ADMISSION_NEEDS_NAMESPACE && !s->fetched_namespace) {
                s->fetched_namespace = true;
                guard_namespace_fetch(s->guard, s->review.namespace, s->share, on_namespace, s);
        } else if (want == GUARD_ADMISSION_NEEDS_POD && !s->fetched_pod) {
                s->fetched_pod = true;
                fetch_pod(s);
        } else if (want == GUARD_ADMISSION_NEEDS_POD && s->failure) {
                struct guard_response answer = {};

                finish(s, &answer);
        } else {
                decide(s);
        }
}

void guard_scc_webhook_handle(struct guard_daemon *guard, struct guard_exchange *exchange, bool validating,
                              enum guard_mode mode) {
        struct session *s = nd_new(struct session);

        s->guard = guard;
        s->exchange = exchange;
        s->share = guard_exchange_client(exchange);
        if (!guard_webhook_receive(guard, exchange, &s->arena, &s->review)) {
                session_free(s);
                return;
        }
        s->admission = (struct guard_admission) {.store = &guard->store,
                                                 .rbac = &guard->rbac,
                                                 .host_network_gate = guard->config.host_network,
                                                 .window = guard->config.ids_per_pod,
                                                 .phase = validating ? GUARD_VALIDATING : GUARD_MUTATING,
                                                 .hook_mode = mode,
                                                 .review = &s->review,
                                                 .batch = FIRST_BATCH,
                                                 .arena = &s->arena};
        advance(s);
}
