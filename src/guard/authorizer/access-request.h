/* SPDX-License-Identifier: Apache-2.0 */
/* access-request.h - SubjectAccessReview v1 as a webhook authorizer receives it. Bytes in, bytes
 * out. */
#pragma once

#include "guard/core/review.h"

enum {
        GUARD_ACCESS_REQUEST_BYTES = 1 << 20,
};

struct guard_access_request {
        struct guard_subject user;
        bool has_resource; /* otherwise it is about a path, and the rest is "" */
        const char *verb;
        const char *group;
        const char *resource;
        const char *subresource;
        const char *name; /* "" if the request has none, as when it creates */
        const char *namespace;
};

/* All output lives in the arena. */
[[nodiscard]] struct nd_error *guard_access_request_decode(const char *bytes, size_t length, struct nd_arena *arena,
                                                           struct guard_access_request *ret);

/* denial nullptr: no opinion, the next authorizer decides. Access is never granted. */
void guard_access_request_answer(const char *denial, struct nd_text *text);
