/* SPDX-License-Identifier: Apache-2.0 */
/* rights.h - SubjectAccessReview: asking the API server who may use a constraint
 *
 * Answers are remembered for a while, so that a controller which makes a hundred pods asks once: a yes for less than the two seconds in
 * which a deleted grant must be gone, a no for half a minute, and neither beyond a change of roles or bindings that the watches told. */
#pragma once

#include "guard/core/review.h"
#include "net/api-client.h"

struct guard_access_reviews;

struct guard_access_reviews *guard_access_reviews_new(struct nd_api *api, const char *group);
void guard_access_reviews_free(struct guard_access_reviews *rights); /* nobody who waits is told any more */

/* Whether an answer is known; changes is the index's count of them. */
bool guard_access_reviews_lookup(struct guard_access_reviews *rights, const struct guard_subject *subject,
                                 const char *namespace, const char *constraint, uint64_t changes, bool *ret_allowed);

/* Asks, on behalf of a share (nd_api_request); done() is called later, with an error where no answer came. An error here says that too many questions are on their way. */
[[nodiscard]] struct nd_error *guard_access_reviews_request(
        struct guard_access_reviews *rights, const struct guard_subject *subject, const char *namespace,
        const char *constraint, uint64_t share, void (*done)(bool allowed, const struct nd_error *error, void *userdata),
        void *userdata);

uint64_t guard_access_reviews_sent(const struct guard_access_reviews *rights); /* how often */
