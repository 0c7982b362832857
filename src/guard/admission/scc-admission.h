/* SPDX-License-Identifier: Apache-2.0 */
/* admit.h - what becomes of a pod, from what is known
 *
 * A pure function of a review, the store and the rights that are known. Where a right is not known it is noted as a question, and the
 * verdict only stands when there are none: the caller asks the API server and decides again. */
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

/* One question to the API server: may this one use that constraint? */
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
        struct nd_arena decision; /* for one decision, and its answer */

        /* both of them as they are asked about */
        struct guard_subject service_account; /* name is nullptr: the pod has none */
        nd_vector(struct guard_access_check) questions;
        size_t batch; /* most questions that one decision raises, the first ones in the order of constraints; 0: all that there are */
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

/* Decides. The answer lives until the next decision. When guard_admission_is_open() it is none, and holds no memory: 500 copies of a pod are
 * too much to keep while the API server is asked. Then it is to be called again with the questions answered. */
void guard_admission_decide(struct guard_admission *admission, struct guard_response *ret);
bool guard_admission_is_open(const struct guard_admission *admission);
