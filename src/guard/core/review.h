/* SPDX-License-Identifier: Apache-2.0 */
/* review.h - AdmissionReview v1: the request and its response. Bytes in, bytes out. */
#pragma once

#include "guard/core/subject.h"
#include "kube/workload.h"
#include "policy/floor.h"

enum {
        /* two objects of 3 MiB, with every byte escaped, and the rest of the review */
        GUARD_REVIEW_BYTES = 16 << 20,
        GUARD_WARNINGS = 64,
        /* the API server truncates the sum of warnings at this length */
        GUARD_WARNING_BYTES = 4096,
};

enum guard_operation {
        GUARD_CREATE,
        GUARD_UPDATE,
        GUARD_CONNECT,
        GUARD_DELETE,
        GUARD_OPERATIONS,
};

struct guard_review {
        const char *uid;
        enum guard_operation operation;
        const char *group; /* of the resource; "" for pods */
        const char *resource;
        const char *subresource;
        const char *name;
        const char *namespace;
        struct guard_subject user;
        bool dry_run;
        struct nd_pod *pod; /* nullptr: the object is not a pod, as with exec */
        struct nd_pod *old; /* on updates */
        /* an update that leaves the whole spec unchanged, including fields that we do not decode */
        bool same_spec;
        /* a workload controller with a template; nullptr: the object is none */
        const struct nd_workload *workload;
        /* why it could not be decoded; nullptr: it could */
        const char *template_error;
        struct nd_shape_pairs labels, old_labels; /* of a namespace */
        /* a NodeVersionFloor; nullptr: the object is none, or cannot be read */
        const struct nd_floor *floor, *old_floor;
        const char *kubelet_version; /* of a node; nullptr: the object is none */
        /* relaxations that are off when it is decided; not part of the review */
        uint32_t gates_off;
};

/* All output lives in the arena. */
[[nodiscard]] struct nd_error *guard_review_decode(const char *bytes, size_t length, struct nd_arena *arena,
                                                   struct guard_review *ret);

/* Texts of a response live as long as its arena. */
struct guard_response {
        bool allowed;
        unsigned code;      /* of a refusal: an HTTP status */
        const char *reason; /* "Forbidden" */
        const char *message;
        unsigned retry_s;  /* 0: a retry does not help */
        const char *patch; /* JSON patch; nullptr: none */
        const char *warnings[GUARD_WARNINGS];
        size_t warning_count;
        struct nd_shape_pair audit[4];
        size_t audit_count;
};

void guard_response_warn(struct guard_response *response, const char *text);
void guard_response_audit(struct guard_response *response, const char *key, const char *value);
void guard_response_deny(struct guard_response *response, unsigned code, const char *reason, const char *message);
void guard_response_write(const struct guard_response *response, const char *uid, struct nd_text *text);
