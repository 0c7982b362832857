/* SPDX-License-Identifier: Apache-2.0 */
/* access-review.h - SubjectAccessReview: queries the API server whether a subject may use a
 * constraint
 *
 * Results are cached, so that a controller which creates a hundred pods costs one query: an allowed
 * one for less than the two seconds within which a deleted grant must take effect, a denied one for
 * half a minute, and neither beyond a change of roles or bindings that the watches reported. */
#pragma once

#include "guard/core/review.h"
#include "net/api-client.h"

struct guard_access_reviews;

struct guard_access_reviews *guard_access_reviews_new(struct nd_api *api, const char *group);
void guard_access_reviews_free(struct guard_access_reviews *reviews); /* waiters are not called */

/* Whether a result is cached; changes is the RBAC index's count of changes. */
bool guard_access_reviews_lookup(struct guard_access_reviews *reviews, const struct guard_subject *subject,
                                 const char *namespace, const char *constraint, uint64_t changes, bool *ret_allowed);

/* Sends a query in a share of the API client's queue (nd_api_request). done() is called later, with
 * an error if no answer came. Fails if too many queries are in flight. */
[[nodiscard]] struct nd_error *guard_access_reviews_request(
        struct guard_access_reviews *reviews, const struct guard_subject *subject, const char *namespace,
        const char *constraint, uint64_t share, void (*done)(bool allowed, const struct nd_error *error, void *userdata),
        void *userdata);

uint64_t guard_access_reviews_sent(const struct guard_access_reviews *reviews); /* queries so far */
