/* SPDX-License-Identifier: Apache-2.0 */
/* access-review.c - see access-review.h
 *
 * Theory of operation
 *   A query in flight is not sent twice: a controller that creates a hundred pods at once costs one
 *   query per constraint. That holds within one share of the API client's queue, as a query in the
 *   share of another client may not be sent in time. An error goes to all waiters and is not
 *   cached.
 * Invariant  a query in @in_flight was sent and not answered; on_answer() removes it before it
 *            calls its waiters, which may request again. */
#include "guard/access/access-review.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/map.h"
#include "guard/access/access-cache.h"

enum {
        REVIEW_BYTES = 256 << 10,
        IN_FLIGHT = 4096, /* queries, of 2 kB each; more would not be answered in time */
};

static constexpr uint64_t allowed_lifetime_us = 1 * ND_SECOND_US;
static constexpr uint64_t denied_lifetime_us =
        30 * ND_SECOND_US; /* as the API server caches a denial of an authorization webhook */
static constexpr uint64_t review_timeout_us = 2 * ND_SECOND_US;

struct waiter {
        struct waiter *next;
        void (*done)(bool allowed, const struct nd_error *error, void *userdata);
        void *userdata;
};

struct query {
        struct guard_access_reviews *reviews;
        char *key;           /* in the cache */
        char *in_flight_key; /* the same with the share */
        uint64_t changes;    /* of the RBAC index, at the time of sending */
        struct waiter *waiters;
};

struct guard_access_reviews {
        struct nd_api *api;
        char *group;
        struct guard_access_cache *cache;
        struct nd_map in_flight; /* key -> struct query */
        size_t in_flight_count;
        uint64_t changes, count;
};

struct guard_access_reviews *guard_access_reviews_new(struct nd_api *api, const char *group) {
        struct guard_access_reviews *reviews = nd_new(struct guard_access_reviews);

        reviews->api = api;
        reviews->group = nd_strdup(group);
        reviews->cache = guard_access_cache_new();
        return reviews;
}

static void free_query(struct query *q) {
        for (struct waiter *waiter = q->waiters, *next; waiter; waiter = next) {
                next = waiter->next;
                free(waiter);
        }
        free(q->key);
        free(q->in_flight_key);
        free(q);
}

void guard_access_reviews_free(struct guard_access_reviews *reviews) {
        const struct nd_map_slot *slot;

        if (!reviews)
                return;
        for (size_t at = 0; (slot = nd_map_next(&reviews->in_flight, &at));)
                free_query(slot->value);
        nd_map_done(&reviews->in_flight);
        guard_access_cache_free(reviews->cache);
        free(reviews->group);
        free(reviews);
}

uint64_t guard_access_reviews_sent(const struct guard_access_reviews *reviews) {
        return reviews->count;
}

/* The key contains everything an authorizer may evaluate. None of the names contains a newline. */
static char *cache_key(const struct guard_subject *subject, const char *namespace, const char *constraint) {
        nd_autotext struct nd_text key = ND_TEXT(REVIEW_BYTES);

        nd_text_addf(&key, "%s\n%s\n%s\n%s\n%s", namespace, constraint, subject->name, subject->uid,
                     nd_kube_or_empty(subject->extra));
        for (size_t i = 0; i < subject->groups.count; i++)
                nd_text_addf(&key, "\n%s", subject->groups.items[i]);
        return key.overflow ? nullptr : nd_text_steal(&key);
}

bool guard_access_reviews_lookup(struct guard_access_reviews *reviews, const struct guard_subject *subject,
                                 const char *namespace, const char *constraint, uint64_t changes, bool *ret_allowed) {
        nd_autofree char *key = cache_key(subject, namespace, constraint);

        if (changes != reviews->changes)
                guard_access_cache_clear(reviews->cache);
        reviews->changes = changes;
        return key && guard_access_cache_get(reviews->cache, key, nd_clock_us(), ret_allowed);
}

/* A result from before a change of roles or bindings goes to its waiters, but is not cached. */
static void cache_result(struct guard_access_reviews *reviews, const struct query *q, bool allowed) {
        uint64_t now_us = nd_clock_us();

        if (q->key && q->changes == reviews->changes)
                guard_access_cache_put(reviews->cache, q->key, now_us,
                                       now_us + (allowed ? allowed_lifetime_us : denied_lifetime_us), allowed);
}

static void write_review(const struct guard_access_reviews *reviews, const struct guard_subject *subject,
                         const char *namespace, const char *constraint, struct nd_text *text) {
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
        nd_json_string(&out, "group", reviews->group);
        nd_json_string(&out, "resource", "securitycontextconstraints");
        nd_json_string(&out, "name", constraint);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}

static void on_answer(const struct nd_api_answer *answer, void *userdata) {
        struct query *q = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autojson yyjson_doc *doc = nullptr;
        bool allowed = false;

        if (!answer->error) {
                error = nd_json_parse(answer->body, answer->length, REVIEW_BYTES * 4, &doc);
                allowed = yyjson_is_true(yyjson_obj_get(yyjson_obj_get(yyjson_doc_get_root(doc), "status"), "allowed"));
        }
        if (!answer->error && !error)
                cache_result(q->reviews, q, allowed);
        if (q->in_flight_key && nd_map_get(&q->reviews->in_flight, q->in_flight_key) == q)
                (void) nd_map_remove(&q->reviews->in_flight, q->in_flight_key);
        nd_assert(q->reviews->in_flight_count > 0);
        q->reviews->in_flight_count--;
        for (const struct waiter *waiter = q->waiters; waiter; waiter = waiter->next)
                waiter->done(allowed, answer->error ? answer->error : error, waiter->userdata);
        free_query(q);
}

static struct query *send_query(struct guard_access_reviews *reviews, const struct guard_subject *subject,
                                const char *namespace, const char *constraint, uint64_t share, char *key,
                                char *in_flight_key) {
        nd_autotext struct nd_text text = ND_TEXT(REVIEW_BYTES);
        struct query *q = nd_new(struct query);

        *q = (struct query) {.reviews = reviews, .key = key, .in_flight_key = in_flight_key, .changes = reviews->changes};
        if (in_flight_key)
                (void) nd_map_put(&reviews->in_flight, in_flight_key, q);
        write_review(reviews, subject, namespace, constraint, &text);
        reviews->count++;
        reviews->in_flight_count++;
        (void) nd_api_send(reviews->api,
                           &(struct nd_api_request) {.method = "POST",
                                                     .path = "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                                                     .body = nd_text_get(&text),
                                                     .timeout_us = review_timeout_us,
                                                     .share = share,
                                                     .done = on_answer,
                                                     .userdata = q});
        return q;
}

struct nd_error *guard_access_reviews_request(struct guard_access_reviews *reviews, const struct guard_subject *subject,
                                              const char *namespace, const char *constraint, uint64_t share,
                                              void (*done)(bool allowed, const struct nd_error *error, void *userdata),
                                              void *userdata) {
        nd_autofree char *key = cache_key(subject, namespace, constraint);
        nd_autofree char *in_flight_key = key ? nd_format("%" PRIu64 "\n%s", share, key) : nullptr;
        struct query *q = in_flight_key ? nd_map_get(&reviews->in_flight, in_flight_key) : nullptr;
        struct waiter *waiter;

        /* a result of a query sent before a change may be older than the change */
        if (!q || q->changes != reviews->changes) {
                if (reviews->in_flight_count >= IN_FLIGHT)
                        return nd_error_new(ND_EXHAUSTED, 0, "%d access reviews are in flight already", IN_FLIGHT);
                q = send_query(reviews, subject, namespace, constraint, share, nd_take_ptr(key), nd_take_ptr(in_flight_key));
        }
        waiter = nd_new(struct waiter);
        *waiter = (struct waiter) {.next = q->waiters, .done = done, .userdata = userdata};
        q->waiters = waiter;
        return nullptr;
}
