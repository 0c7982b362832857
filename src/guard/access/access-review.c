/* SPDX-License-Identifier: Apache-2.0 */
/* rights.c - see rights.h
 *
 * Theory of operation
 *   A question that is under way already is not asked twice: a controller that makes a hundred pods at once costs one question for each
 *   constraint. That is so within one share: a question in the queue of another client may not come to its turn in time. An error goes to all
 *   that wait, and is not remembered.
 * Invariant  a question of asked is on its way; on_answer() takes it out before it tells anybody, who may ask again. */
#include "guard/access/access-review.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/map.h"
#include "guard/access/access-cache.h"

enum {
        REVIEW_BYTES = 256 << 10,
        UNDER_WAY = 4096, /* questions, of 2 kB each; so many are not answered in time anyway */
};

#define YES_US (1 * ND_SECOND_US)
#define NO_US (30 * ND_SECOND_US) /* as long as the API server itself remembers the no of a webhook that it asks */
#define TIMEOUT_US (2 * ND_SECOND_US)

struct waiter {
        struct waiter *next;
        void (*done)(bool allowed, const struct nd_error *error, void *userdata);
        void *userdata;
};

struct question {
        struct guard_access_reviews *rights;
        char *key;        /* of its answer */
        char *asked_key;  /* and with the share */
        uint64_t changes; /* when it was asked */
        struct waiter *waiters;
};

struct guard_access_reviews {
        struct nd_api *api;
        char *group;
        struct guard_access_cache *answers;
        struct nd_map asked; /* key -> struct question */
        size_t under_way;
        uint64_t changes, count;
};

struct guard_access_reviews *guard_access_reviews_new(struct nd_api *api, const char *group) {
        struct guard_access_reviews *rights = nd_new(struct guard_access_reviews);

        rights->api = api;
        rights->group = nd_strdup(group);
        rights->answers = guard_access_cache_new();
        return rights;
}

static void free_question(struct question *q) {
        for (struct waiter *waiter = q->waiters, *next; waiter; waiter = next) {
                next = waiter->next;
                free(waiter);
        }
        free(q->key);
        free(q->asked_key);
        free(q);
}

void guard_access_reviews_free(struct guard_access_reviews *rights) {
        const struct nd_map_slot *slot;

        if (!rights)
                return;
        for (size_t at = 0; (slot = nd_map_next(&rights->asked, &at));)
                free_question(slot->value);
        nd_map_done(&rights->asked);
        guard_access_cache_free(rights->answers);
        free(rights->group);
        free(rights);
}

uint64_t guard_access_reviews_sent(const struct guard_access_reviews *rights) {
        return rights->count;
}

/* Everything that an authorizer may look at. A newline is in none of the names. */
static char *key_of(const struct guard_subject *subject, const char *namespace, const char *constraint) {
        nd_autotext key = ND_TEXT(REVIEW_BYTES);

        nd_text_addf(&key, "%s\n%s\n%s\n%s\n%s", namespace, constraint, subject->name, subject->uid,
                     nd_or_empty(subject->extra));
        for (size_t i = 0; i < subject->groups.count; i++)
                nd_text_addf(&key, "\n%s", subject->groups.items[i]);
        return key.overflow ? nullptr : nd_text_steal(&key);
}

bool guard_access_reviews_lookup(struct guard_access_reviews *rights, const struct guard_subject *subject,
                                 const char *namespace, const char *constraint, uint64_t changes, bool *ret_allowed) {
        nd_autofree char *key = key_of(subject, namespace, constraint);

        if (changes != rights->changes)
                guard_access_cache_clear(rights->answers);
        rights->changes = changes;
        return key && guard_access_cache_get(rights->answers, key, nd_clock_us(), ret_allowed);
}

/* What was asked before roles or bindings changed is good for those who wait, and for nobody later. */
static void remember(struct guard_access_reviews *rights, const struct question *q, bool allowed) {
        uint64_t now_us = nd_clock_us();

        if (q->key && q->changes == rights->changes)
                guard_access_cache_put(rights->answers, q->key, now_us, now_us + (allowed ? YES_US : NO_US), allowed);
}

static void write_review(const struct guard_access_reviews *rights, const struct guard_subject *subject, const char *namespace,
                         const char *constraint, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "authorization.k8s.io/v1");
        nd_json_string(&out, "kind", "SubjectAccessReview");
        nd_json_open(&out, "spec", '{');
        nd_json_string(&out, "user", subject->name);
        if (*subject->uid)
                nd_json_string(&out, "uid", subject->uid);
        nd_json_open(&out, "groups", '[');
        for (size_t i = 0; i < subject->groups.count; i++)
                nd_json_string(&out, nullptr, subject->groups.items[i]);
        nd_json_close(&out, ']');
        if (subject->extra)
                nd_json_raw(&out, "extra", subject->extra);
        nd_json_open(&out, "resourceAttributes", '{');
        nd_json_string(&out, "namespace", namespace);
        nd_json_string(&out, "verb", "use");
        nd_json_string(&out, "group", rights->group);
        nd_json_string(&out, "resource", "securitycontextconstraints");
        nd_json_string(&out, "name", constraint);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct question *q = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson doc = nullptr;
        bool allowed = false;

        if (!answer->error) {
                error = nd_json_parse(answer->body, answer->length, REVIEW_BYTES * 4, &doc);
                allowed = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "allowed"));
        }
        if (!answer->error && !error)
                remember(q->rights, q, allowed);
        if (q->asked_key && nd_map_get(&q->rights->asked, q->asked_key) == q)
                (void) nd_map_remove(&q->rights->asked, q->asked_key);
        q->rights->under_way--;
        for (const struct waiter *waiter = q->waiters; waiter; waiter = waiter->next)
                waiter->done(allowed, answer->error ? answer->error : error, waiter->userdata);
        free_question(q);
}

static struct question *send_question(struct guard_access_reviews *rights, const struct guard_subject *subject,
                                      const char *namespace, const char *constraint, uint64_t share, char *key,
                                      char *asked_key) {
        nd_autotext text = ND_TEXT(REVIEW_BYTES);
        struct question *q = nd_new(struct question);

        *q = (struct question) {.rights = rights, .key = key, .asked_key = asked_key, .changes = rights->changes};
        if (asked_key)
                (void) nd_map_put(&rights->asked, asked_key, q);
        write_review(rights, subject, namespace, constraint, &text);
        rights->count++;
        rights->under_way++;
        (void) nd_api_send(rights->api, &(struct nd_api_request) {.method = "POST",
                                                                  .path = "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                                                  .body = nd_text_get(&text),
                                                                  .timeout_us = TIMEOUT_US,
                                                                  .share = share,
                                                                  .done = on_answer,
                                                                  .userdata = q});
        return q;
}

struct nd_error *guard_access_reviews_request(struct guard_access_reviews *rights, const struct guard_subject *subject,
                                              const char *namespace, const char *constraint, uint64_t share,
                                              void (*done)(bool allowed, const struct nd_error *error, void *userdata),
                                              void *userdata) {
        nd_autofree char *key = key_of(subject, namespace, constraint);
        nd_autofree char *asked_key = key ? nd_format("%" PRIu64 "\n%s", share, key) : nullptr;
        struct question *q = asked_key ? nd_map_get(&rights->asked, asked_key) : nullptr;
        struct waiter *waiter;

        if (!q || q->changes != rights->changes) { /* an answer to what was asked before a change may be older than it */
                if (rights->under_way >= UNDER_WAY)
                        return nd_error_new(ND_EXHAUSTED, 0, "the API server is being asked about %d rights already",
                                            UNDER_WAY);
                q = send_question(rights, subject, namespace, constraint, share, nd_take_ptr(key), nd_take_ptr(asked_key));
        }
        waiter = nd_new(struct waiter);
        *waiter = (struct waiter) {.next = q->waiters, .done = done, .userdata = userdata};
        q->waiters = waiter;
        return nullptr;
}
