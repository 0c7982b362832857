/* SPDX-License-Identifier: Apache-2.0 */
/* scc-admission.h - admission by security context constraints: of pods, of the templates of
 * workload controllers, and of the labels that select what happens in a namespace
 *
 * A pure function of a review, the store and the known access results. A missing access result is
 * noted as an open check, and the response is only valid if there is none: the caller requests
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
        bool service_account; /* of the pod; otherwise the user who creates the pod */
        const char *constraint;
        bool answered;
        bool allowed;
};

struct guard_admission {
        struct guard_store *store;
        const struct guard_rbac *rbac;
        bool rbac_is_fresh; /* otherwise its "allowed" does not count */
        /* the cluster has no other authorizers for users: then its "denied" counts too */
        bool rbac_decides;
        bool host_network_gate;
        uint32_t window;
        enum guard_phase phase;
        enum guard_mode hook_mode; /* carried by the hook's path; GUARD_MODE_OFF: none */
        const struct guard_review *review;
        struct nd_pod *live;      /* the pod of exec and attach; nullptr: not fetched yet */
        struct nd_arena *arena;   /* lives until the end of the review */
        struct nd_arena decision; /* for one decision and its response */

        /* both subjects as they are checked */
        struct guard_subject service_account; /* name is nullptr: the pod has none */
        /* the requesting user; of a template: the controller that will create its pods */
        struct guard_subject user;
        nd_vector(struct guard_access_check) checks;
        /* maximum of checks that one decision raises, in the order of constraints; 0: no limit */
        size_t batch;
        size_t raised;           /* by the last decision */
        bool by_service_account; /* the service account was allowed, not the user */
};

void guard_admission_done(struct guard_admission *admission);

/* What must be fetched before the review can be decided. */
enum guard_admission_need {
        GUARD_ADMISSION_NEEDS_NOTHING,
        GUARD_ADMISSION_NEEDS_NAMESPACE, /* the watch has not reported it yet */
        GUARD_ADMISSION_NEEDS_POD,       /* of exec and attach */
};
enum guard_admission_need guard_admission_needs(const struct guard_admission *admission);

/* Decides. The response lives until the next decision. If guard_admission_is_open(), there is no
 * response and no memory is held: 500 copies of a pod would be too much to keep while the API
 * server is queried. Then call it again with the checks answered. */
void guard_admission_decide(struct guard_admission *admission, struct guard_response *ret);
bool guard_admission_is_open(const struct guard_admission *admission);

/* Whether a review that cannot be decided must be allowed: of a template, or in a namespace that
 * only warns. */
bool guard_admission_only_warns(const struct guard_admission *admission);
