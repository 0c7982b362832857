/* SPDX-License-Identifier: Apache-2.0 */
/* scc-admission.c - see scc-admission.h
 *
 *      request                 mutating                         validating
 *      a new pod               filled by the first constraint   must fit a constraint as it is
 *      a mirror pod            -                                must fit as it is: the kubelet's
 *                                                               group may use `privileged`
 *      metadata update         -                                passes, except for our annotations
 *      spec update, resize     -                                must fit as it is
 *      ephemeral containers    they are filled                  must fit as it is
 *      exec, attach            -                                the live pod must fit a constraint
 *                                                               of the user as it is
 *      a workload's template   -                                a warning if its pods would be
 *                                                               refused; on a dry run it names the
 *                                                               constraint otherwise
 *      a namespace             -                                unknown values of our labels are
 *                                                               refused (label-admission.c)
 *
 * The mode is the stricter one of the namespace's label, as the watch reported it, and of the
 * hook's path: the API server chose that hook by the label it has. Exec and attach fill nothing in:
 * the image decides about fields that a running pod leaves open, which may mean root. The
 * constraint that is recorded on a pod is tried first, and has no other weight: any user can write
 * the annotation while constraints are not enforced. In a namespace that only warns nothing is
 * filled in and nothing denied, and the validating phase warns about would-be denials. */
#include "guard/admission/scc-admission.h"

#include "guard/admission/label-admission.h"
#include "guard/admission/patch.h"
#include "guard/admission/scc-refusal.h"

#define MIRROR "kubernetes.io/config.mirror"

void guard_admission_done(struct guard_admission *admission) {
        nd_arena_done(&admission->decision);
        nd_vector_done(&admission->checks);
}

static bool is_connect(const struct guard_review *review) {
        return review->operation == GUARD_CONNECT;
}

/* The workload controllers, with the service account in kube-system that creates their pods. */
static const struct controller {
        const char *group;
        const char *resource;
        const char *account; /* nullptr: the pods are created by others */
} controllers[] = {
        {"", "podtemplates", nullptr},
        {"", "replicationcontrollers", "replication-controller"},
        {"apps", "daemonsets", "daemon-set-controller"},
        {"apps", "deployments", "replicaset-controller"},
        {"apps", "replicasets", "replicaset-controller"},
        {"apps", "statefulsets", "statefulset-controller"},
        {"batch", "cronjobs", "job-controller"},
        {"batch", "jobs", "job-controller"},
};

static const struct controller *controller_of(const struct guard_review *review) {
        for (size_t i = 0; i < nd_count_of(controllers); i++)
                if (nd_streq(controllers[i].resource, review->resource) && nd_streq(controllers[i].group, review->group))
                        return &controllers[i];
        return nullptr;
}

static bool is_of_namespaces(const struct guard_review *review) {
        return nd_streq(review->resource, "namespaces") && *review->group == '\0';
}

/* Whether the author of a workload is a controller of the control plane, as of a Deployment's
 * ReplicaSets: the user was warned at the Deployment. */
static bool is_by_controller(const struct guard_review *review) {
        return nd_has_prefix(review->user.name, "system:serviceaccount:kube-system:") ||
               nd_streq(review->user.name, "system:kube-controller-manager");
}

/* Whether the review is of a template that is judged. */
static bool is_template(const struct guard_admission *a) {
        const struct guard_review *review = a->review;

        return a->phase == GUARD_VALIDATING && review->workload && *review->subresource == '\0' &&
               (review->operation == GUARD_CREATE || review->operation == GUARD_UPDATE) && controller_of(review) &&
               !is_by_controller(review);
}

/* Reviews that pass without a decision: neither of pods nor of templates, or of an operation that
 * changes nothing. */
static bool is_none_of_ours(const struct guard_admission *a) {
        const struct guard_review *review = a->review;

        if (is_template(a))
                return false;
        if (!nd_streq(review->resource, "pods") || *review->group || review->operation == GUARD_DELETE)
                return true;
        if (is_connect(review))
                return a->phase == GUARD_MUTATING ||
                       (!nd_streq(review->subresource, "exec") && !nd_streq(review->subresource, "attach"));
        if (!review->pod)
                return false; /* denied later */
        return nd_streq(review->subresource, "status") || nd_streq(review->subresource, "binding") ||
               nd_streq(review->subresource, "eviction");
}

static enum guard_mode mode_of(const struct guard_admission *a, const struct guard_namespace *namespace) {
        return a->hook_mode > namespace->mode ? a->hook_mode : namespace->mode;
}

bool guard_admission_only_warns(const struct guard_admission *a) {
        const struct guard_namespace *namespace = guard_store_namespace(a->store, a->review->namespace);

        return is_template(a) || (namespace ? mode_of(a, namespace) : a->hook_mode) == GUARD_MODE_WARN;
}

enum guard_admission_need guard_admission_needs(const struct guard_admission *a) {
        const struct guard_namespace *namespace;

        if (is_none_of_ours(a))
                return GUARD_ADMISSION_NEEDS_NOTHING;
        namespace = guard_store_namespace(a->store, a->review->namespace);
        if (!namespace)
                return GUARD_ADMISSION_NEEDS_NAMESPACE;
        return is_connect(a->review) && mode_of(a, namespace) != GUARD_MODE_OFF && !a->live ? GUARD_ADMISSION_NEEDS_POD
                                                                                            : GUARD_ADMISSION_NEEDS_NOTHING;
}

bool guard_admission_is_open(const struct guard_admission *a) {
        nd_vector_each (check, &a->checks)
                if (!check->answered)
                        return true;
        return false;
}

/* ---- access ---- */

static bool is_known_to_be_allowed(const struct guard_admission *a, const struct nd_scc *scc,
                                   const struct guard_subject *subject) {
        return guard_subject_is_listed(subject, scc) ||
               (a->rbac_is_fresh && guard_rbac_allows(a->rbac, subject, a->review->namespace, scc->metadata.name));
}

/* Drops checks of the last decision that were not requested: with the results that arrived since
 * they may not be needed. */
static void drop_open_checks(struct guard_admission *a) {
        size_t kept = 0;

        nd_vector_each (check, &a->checks)
                if (check->answered)
                        a->checks.items[kept++] = *check;
        a->checks.count = kept;
        a->raised = 0;
}

static bool may_raise(const struct guard_admission *a) {
        return a->checks.count < GUARD_ACCESS_CHECKS && (a->batch == 0 || a->raised < a->batch);
}

/* Returns the result of an access review; a check without one is noted as open. */
static bool is_allowed_by_review(struct guard_admission *a, const struct nd_scc *scc, bool service_account) {
        nd_vector_each (check, &a->checks)
                if (check->service_account == service_account && nd_streq(check->constraint, scc->metadata.name))
                        return check->answered && check->allowed;
        if (may_raise(a)) {
                nd_vector_push(&a->checks,
                               ((struct guard_access_check) {.service_account = service_account,
                                                             .constraint = nd_arena_strdup(a->arena, scc->metadata.name)}));
                a->raised++;
        }
        return false;
}

static bool is_granted(const struct guard_admission *a, const struct nd_scc *scc, const struct guard_subject *subject) {
        return guard_subject_is_listed(subject, scc) ||
               guard_rbac_allows(a->rbac, subject, a->review->namespace, scc->metadata.name);
}

/* For advice: what is known without another access review. The index counts even if it is not
 * fresh, as it often is not in an idle cluster: this decides no access. */
static bool is_known(const struct nd_scc *scc, void *userdata) {
        const struct guard_admission *a = userdata;
        bool denied = false;

        nd_vector_each (check, &a->checks) {
                if (!check->answered || !nd_streq(check->constraint, scc->metadata.name))
                        continue;
                if (check->allowed)
                        return true;
                denied = true;
        }
        return !denied &&
               ((a->service_account.name && is_granted(a, scc, &a->service_account)) || is_granted(a, scc, &a->user));
}

static bool may_use(const struct nd_scc *scc, void *userdata) {
        struct guard_admission *a = userdata;
        bool has_account = a->service_account.name != nullptr;

        a->by_service_account = has_account && is_known_to_be_allowed(a, scc, &a->service_account);
        if (a->by_service_account || is_known_to_be_allowed(a, scc, &a->user))
                return true;
        if (a->rbac_is_fresh && a->rbac_decides)
                return false;
        a->by_service_account = has_account && is_allowed_by_review(a, scc, true);
        return a->by_service_account || is_allowed_by_review(a, scc, false);
}

static bool is_open(void *userdata) {
        return guard_admission_is_open(userdata);
}

/* Sets the account as which a pod will run, and the user who creates it. For exec only the rights
 * of the requesting user count. The pods of a template get the account that the API server would
 * fill in, and are created by a controller. */
static void set_subjects(struct guard_admission *a, const struct nd_pod *pod) {
        const struct controller *controller = is_template(a) ? controller_of(a->review) : nullptr;
        const char *account = nd_kube_or_empty(pod->spec.service_account);

        if (a->user.name)
                return;
        a->user = a->review->user;
        if (controller && *account == '\0')
                account = "default";
        if (*account && !is_connect(a->review))
                a->service_account = guard_subject_of_account(a->review->namespace, account, false, a->arena);
        if (controller)
                a->user = controller->account ? guard_subject_of_account("kube-system", controller->account, true, a->arena)
                                              : guard_subject_of_account(a->review->namespace, account, true, a->arena);
}

/* ---- choosing a constraint ---- */

static const char *required_constraint(const struct nd_pod *pod) {
        const char *ours = nd_shape_pairs_get(&pod->metadata.annotations, GUARD_ANNOTATION_REQUIRED);

        return nd_kube_or_empty(ours ? ours
                                     : nd_shape_pairs_get(&pod->metadata.annotations, GUARD_ANNOTATION_REQUIRED_OPENSHIFT));
}

static struct nd_scc_request request_of(struct guard_admission *a, const struct guard_namespace *namespace,
                                        const struct nd_pod *pod) {
        struct nd_scc_request request = {.set = guard_store_set(a->store),
                                         .namespace = {.uid_range = namespace->uid_range,
                                                       .supplemental_groups = namespace->supplemental_groups,
                                                       .mcs = namespace->mcs},
                                         .userns = namespace->userns,
                                         .may_set_user_namespace =
                                                 guard_store_offers_user_namespaces(a->store, pod->spec.runtime_class),
                                         .host_network_gate = a->host_network_gate,
                                         .window = a->window,
                                         .may_use = may_use,
                                         .is_open = is_open,
                                         .userdata = a};

        if (is_connect(a->review)) {
                request.userns = ND_SCC_USERNS_ASKED;
                request.may_set_user_namespace = false;
        }
        /* a pod that exists may be used and shrunk; what is new needs the floor */
        if (a->review->operation == GUARD_CREATE || is_template(a) || nd_streq(a->review->subresource, "ephemeralcontainers"))
                request.gates_off = a->review->gates_off;
        return request;
}

/* A set with only this constraint. */
static const struct nd_scc_set *set_of_one(struct guard_admission *a, const struct nd_scc *scc) {
        struct nd_scc_set *one = nd_arena_new(&a->decision, struct nd_scc_set);

        *one = nd_scc_set_make(&scc, 1, &a->decision);
        return one;
}

/* A constraint that the pod requires becomes the only one of the request. */
static void choose(struct guard_admission *a, struct nd_scc_request *request, const struct nd_pod *pod,
                   struct nd_scc_choice *ret) {
        const char *required = required_constraint(pod), *recorded;
        struct nd_scc_request narrowed = *request;
        const struct nd_scc *scc;

        if (*required) {
                scc = guard_store_constraint(a->store, required);
                if (!scc) {
                        *ret = (struct nd_scc_choice) {};
                        ret->refusal = nd_arena_format(
                                &a->decision, "the pod requires security context constraint '%s', which does not exist",
                                required);
                        return;
                }
                request->set = set_of_one(a, scc);
                nd_scc_choose(request, pod, &a->decision, ret);
                return;
        }
        /* The recorded constraint is likely to fit. Trying it first is the only use of the
         * record. */
        recorded = nd_kube_or_empty(nd_shape_pairs_get(&pod->metadata.annotations, GUARD_ANNOTATION_SCC));
        scc = request->update && *recorded ? guard_store_constraint(a->store, recorded) : nullptr;
        if (scc) {
                narrowed.set = set_of_one(a, scc);
                nd_scc_choose(&narrowed, pod, &a->decision, ret);
                if (ret->scc)
                        return;
                nd_scc_choice_done(ret);
        }
        nd_scc_choose(request, pod, &a->decision, ret);
}

/* Whether a pod that was created before its namespace got its ranges would be admitted with ranges:
 * then a retry can succeed. */
static bool waits_for_ranges(struct guard_admission *a, const struct nd_scc_request *request, const struct nd_pod *pod) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request with = *request;

        if (request->namespace.uid_range && request->namespace.mcs)
                return false;
        with.namespace = (struct nd_scc_namespace) {.uid_range = "1000000000/10000", .mcs = "s0:c1,c0"};
        choose(a, &with, pod, &choice);
        return choice.scc != nullptr;
}

/* Returns what the user reads. A refusal without constraints to blame is a sentence already. */
static const char *refusal_text(struct guard_admission *a, const struct nd_scc_request *request, const struct nd_pod *pod,
                                const struct nd_scc_choice *choice) {
        struct nd_scc_request known = *request;

        if (choice->misses.count == 0 && request->set->count > 0)
                return choice->refusal;
        known.may_use = is_known;
        known.is_open = nullptr;
        return guard_refusal_text(&(struct guard_refusal) {.rbac = a->rbac,
                                                           .review = a->review,
                                                           .user = &a->user,
                                                           .service_account = &a->service_account,
                                                           .request = &known,
                                                           .pod = pod,
                                                           .arena = &a->decision});
}

/* The audit log gets the reasons of all constraints. */
static void refuse(struct guard_admission *a, const struct nd_scc_request *request, const struct nd_pod *pod,
                   const struct nd_scc_choice *choice, struct guard_response *response) {
        const char *text = refusal_text(a, request, pod, choice);

        if (is_connect(a->review))
                text = nd_arena_format(
                        &a->decision,
                        "%s operation is not allowed because the pod's security context exceeds your permissions: %s",
                        a->review->subresource, text);
        guard_response_deny(response, 403, "Forbidden", text);
        guard_response_audit(response, "refusal", choice->refusal);
}

/* ---- phases ---- */

static void enforce(struct guard_admission *a, const struct guard_namespace *namespace, const struct nd_pod *pod,
                    bool as_it_is, bool ephemeral, struct guard_response *response) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = request_of(a, namespace, pod);
        struct nd_shape_pair annotations[2] = {{.key = GUARD_ANNOTATION_SCC}, {.key = GUARD_ANNOTATION_SUBJECT}};
        bool records = a->phase == GUARD_MUTATING && a->review->operation == GUARD_CREATE;

        request.update = as_it_is || ephemeral;
        request.ephemeral = ephemeral;
        choose(a, &request, pod, &choice);
        if (!choice.scc) {
                bool retry = !as_it_is && waits_for_ranges(a, &request, pod);

                if (retry) {
                        guard_response_deny(response, 503, "ServiceUnavailable",
                                            nd_arena_format(&a->decision,
                                                            "namespace '%s' has no ranges of user IDs yet; try again",
                                                            a->review->namespace));
                        response->retry_s = GUARD_RETRY_SECONDS;
                        guard_response_audit(response, "refusal", choice.refusal);
                } else {
                        refuse(a, &request, pod, &choice, response);
                }
                return;
        }
        annotations[0].value = choice.scc->metadata.name;
        annotations[1].value = a->by_service_account ? "serviceaccount" : "user";
        guard_response_audit(response, "constraint", choice.scc->metadata.name);
        guard_response_audit(response, "subject-type", annotations[1].value);
        if (a->phase == GUARD_MUTATING)
                response->patch = guard_patch_make(pod, choice.pod, annotations, records ? 2 : 0, &a->decision);
}

static void warn(struct guard_admission *a, const struct guard_namespace *namespace, const struct nd_pod *pod,
                 struct guard_response *response) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = request_of(a, namespace, pod);

        if (a->phase == GUARD_MUTATING)
                return;
        request.update = a->review->operation == GUARD_UPDATE || is_connect(a->review);
        choose(a, &request, pod, &choice);
        if (choice.scc || waits_for_ranges(a, &request, pod))
                return;
        guard_response_warn(response,
                            nd_arena_format(&a->decision, "would be refused if " GUARD_LABEL_CONSTRAINTS " were enforce: %s",
                                            refusal_text(a, &request, pod, &choice)));
        guard_response_audit(response, "would-refuse", choice.refusal);
}

/* Returns " as user 1000650000" if the first container's user is known. */
static const char *as_user(const struct nd_pod *pod, struct nd_arena *arena) {
        const struct nd_pod_container *first = pod->spec.containers.count > 0 ? pod->spec.containers.items : nullptr;
        struct nd_shape_int user = first && first->security ? first->security->run_as_user : (struct nd_shape_int) {};

        if (!user.set && pod->spec.security)
                user = pod->spec.security->run_as_user;
        return user.set ? nd_arena_format(arena, " as user %s", nd_field_int(arena, user.value)) : "";
}

/* A template is never refused: its pods are, and then the controller gets the message, not the
 * user. */
static void judge_template(struct guard_admission *a, const struct guard_namespace *namespace, const struct nd_pod *pod,
                           struct guard_response *response) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = request_of(a, namespace, pod);
        bool enforced = mode_of(a, namespace) == GUARD_MODE_ENFORCE;
        const char *what = nd_arena_format(&a->decision, "pods of %s %s with %s", a->review->workload->kind,
                                           guard_refusal_name(a->review->workload->name, &a->decision),
                                           guard_refusal_subject(&a->service_account, &a->decision));

        choose(a, &request, pod, &choice);
        if (choice.scc) {
                guard_response_audit(response, "would-admit", choice.scc->metadata.name);
                if (a->review->dry_run)
                        guard_response_warn(
                                response,
                                nd_arena_format(&a->decision, "%s would be admitted by %s%s%s", what,
                                                choice.scc->metadata.name, as_user(choice.pod, &a->decision),
                                                nd_pod_has_user_namespace(choice.pod) ? " in a user namespace" : ""));
        } else if (!waits_for_ranges(a, &request, pod)) {
                guard_response_warn(response,
                                    nd_arena_format(&a->decision, "%s %s: %s", what,
                                                    enforced ? "will be refused"
                                                             : "would be refused if " GUARD_LABEL_CONSTRAINTS " were enforce",
                                                    refusal_text(a, &request, pod, &choice)));
                guard_response_audit(response, "would-refuse", choice.refusal);
        }
}

/* Annotations with results are written by the guard only, and the required constraint cannot
 * change. */
static const char *changed_annotation(const struct guard_review *review) {
        static const char *const ours[] = {GUARD_ANNOTATION_SCC, GUARD_ANNOTATION_SUBJECT, GUARD_ANNOTATION_REQUIRED,
                                           GUARD_ANNOTATION_REQUIRED_OPENSHIFT};

        for (size_t i = 0; review->old && i < nd_count_of(ours); i++) {
                const char *before = nd_shape_pairs_get(&review->old->metadata.annotations, ours[i]);
                const char *after = nd_shape_pairs_get(&review->pod->metadata.annotations, ours[i]);

                if ((before != nullptr) != (after != nullptr) || (before && !nd_streq(before, after)))
                        return ours[i];
        }
        return nullptr;
}

static void update(struct guard_admission *a, const struct guard_namespace *namespace, struct guard_response *response) {
        const struct guard_review *review = a->review;
        bool ephemeral = nd_streq(review->subresource, "ephemeralcontainers"), fills = ephemeral && a->phase == GUARD_MUTATING;
        const char *changed = changed_annotation(review);

        if (changed && mode_of(a, namespace) == GUARD_MODE_ENFORCE) {
                guard_response_deny(response, 403, "Forbidden",
                                    nd_arena_format(&a->decision, "the annotation %s of a pod cannot be changed", changed));
                return;
        }
        if (review->same_spec || (a->phase == GUARD_MUTATING && !ephemeral))
                return;
        if (mode_of(a, namespace) == GUARD_MODE_WARN)
                warn(a, namespace, review->pod, response);
        else
                enforce(a, namespace, review->pod, !fills, fills, response);
}

static void create(struct guard_admission *a, const struct guard_namespace *namespace, const struct nd_pod *pod,
                   struct guard_response *response) {
        bool mirror = nd_shape_pairs_get(&pod->metadata.annotations, MIRROR) && !is_connect(a->review);

        if (mirror && a->phase == GUARD_MUTATING)
                return;
        if (mode_of(a, namespace) == GUARD_MODE_WARN)
                warn(a, namespace, pod, response);
        else
                enforce(a, namespace, pod, a->phase == GUARD_VALIDATING, false, response);
}

static void decide(struct guard_admission *a, struct guard_response *ret) {
        const struct guard_namespace *namespace = guard_store_namespace(a->store, a->review->namespace);
        const struct nd_pod *pod = is_connect(a->review) ? a->live : a->review->pod;

        *ret = (struct guard_response) {.allowed = true};
        if (is_of_namespaces(a->review) && a->phase == GUARD_VALIDATING)
                guard_labels_decide(a->review, &a->decision, ret);
        if (is_none_of_ours(a) || (!namespace && is_template(a)))
                return;
        if (!namespace) {
                guard_response_deny(
                        ret, 503, "ServiceUnavailable",
                        nd_arena_format(&a->decision, "namespace '%s' is not known yet; try again", a->review->namespace));
                ret->retry_s = GUARD_RETRY_SECONDS;
                return;
        }
        if (mode_of(a, namespace) == GUARD_MODE_OFF || (is_connect(a->review) && !pod))
                return; /* the API server itself reports a missing pod */
        if (is_template(a)) {
                set_subjects(a, &a->review->workload->pod);
                judge_template(a, namespace, &a->review->workload->pod, ret);
                return;
        }
        if (!pod) {
                guard_response_deny(ret, 400, "BadRequest", "the object is not a Pod");
                return;
        }
        set_subjects(a, pod);
        if (a->review->operation == GUARD_UPDATE)
                update(a, namespace, ret);
        else
                create(a, namespace, pod, ret);
}

void guard_admission_decide(struct guard_admission *a, struct guard_response *ret) {
        nd_arena_reset(&a->decision);
        drop_open_checks(a);
        decide(a, ret);
        if (!guard_admission_is_open(a))
                return;
        nd_arena_done(&a->decision);
        *ret = (struct guard_response) {};
}
