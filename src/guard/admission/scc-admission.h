/* SPDX-License-Identifier: Apache-2.0 */
/* scc-admission.h - admission of a pod by security context constraints
 *
 * A pure function of a review, the store and the access that is known. An access that is not known
 * is noted as an open check, and the response only stands when there is none: the caller requests
 * access reviews and decides again. */
#pragma once

#include "guard/access/rbac.h"
#include "guard/core/review.h"
#include "guard/core/store.h"

#define GUARD_ANNOTATION_SCC GUARD_PREFIX "scc"
#define GUARD_ANNOTATION_SUBJECT GUARD_PREFIX "validated-scc-subject-type"
#define GUARD_ANNOTATION_REQUIRED GUARD_PREFIX "required-scc"
#define GUARD_ANNOTATION_REQUIRED_OPENSHIFT "openshift.io/required-scc"

enum {
        GUARD_ACCESS_CHECKS = 1024,
        GUARD_RETRY_SECONDS = 1,
};

enum guard_phase {
        GUARD_MUTATING,
        GUARD_VALIDATING,
};

/* One access check: may this subject use that constraint? */
struct guard_access_check {
        bool service_account; /* the pod's; else the user who asks */
        const char *constraint;
        bool answered;
        bool allowed;
};

struct guard_admission {
        struct guard_store *store;
        const struct guard_rbac *rbac;
        bool rbac_is_fresh; /* else its yes does not count */
        bool rbac_decides;  /* the cluster has no other authorizers for people: then its no counts as well */
        bool host_network_gate;
        uint32_t window;
        enum guard_phase phase;
        enum guard_mode hook_mode; /* that the hook's path says; GUARD_MODE_OFF: it says none */
        const struct guard_review *review;
        struct nd_pod *live;      /* of exec and attach: the pod; nullptr: not fetched yet */
        struct nd_arena *arena;   /* for what is needed until the end */
        struct nd_arena decision; /* for one decision, and its response */

        /* both of them as they are asked about */
        struct guard_subject service_account; /* name is nullptr: the pod has none */
        nd_vector(struct guard_access_check) checks;
        size_t batch;            /* most checks that one decision raises, in the order of constraints; 0: no limit */
        size_t raised;           /* by the last one */
        bool by_service_account; /* who was found to be allowed */
};

void guard_admission_done(struct guard_admission *admission);

/* What must be fetched before anything can be said. */
enum guard_admission_need {
        GUARD_ADMISSION_NEEDS_NOTHING,
        GUARD_ADMISSION_NEEDS_NAMESPACE, /* the watch has not told it yet */
        GUARD_ADMISSION_NEEDS_POD,       /* of exec and attach */
};
enum guard_admission_need guard_admission_needs(const struct guard_admission *admission);

/* Decides. The response lives until the next decision. When guard_admission_is_open() it is none,
 * and holds no memory: 500 copies of a pod are too much to keep while the API server is asked. Then
 * it is to be called again with the checks answered. */
void guard_admission_decide(struct guard_admission *admission, struct guard_response *ret);
bool guard_admission_is_open(const struct guard_admission *admission);
