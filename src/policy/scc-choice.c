/* SPDX-License-Identifier: Apache-2.0 */
/* scc-choice.c - chooses the constraint that admits a pod
 *
 * Constraints are tried in order; the first that fits and may be used wins. Access is checked only
 * for constraints that fit: most constraints do not fit most pods, and an access check may cost a
 * round trip. nd_scc_is_out() rules most of them out cheaply, and the reasons of a misfit are only
 * formatted for a denial, in a second pass. A constraint that is invalid, or needs a range that the
 * namespace does not have, does not fit; the others are tried all the same.
 *
 * hostUsers: false is set for a pod that leaves it open, if its namespace asks for it, or if no
 * constraint admits the pod without. Never if the API server would refuse it, and never on an
 * update. */
#include <string.h>

#include "policy/floor.h"
#include "policy/hostusers.h"

enum {
        REFUSAL_LENGTH = 64 << 10,
};

void nd_scc_choice_done(struct nd_scc_choice *choice) {
        nd_vector_done(&choice->misses);
}

static bool same_text(const char *a, const char *b) {
        return nd_streq(nd_kube_or_empty(a), nd_kube_or_empty(b));
}

static bool same_int(struct nd_shape_int a, struct nd_shape_int b) {
        return a.set == b.set && a.value == b.value;
}

static bool same_selinux(const struct nd_pod_selinux *a, const struct nd_pod_selinux *b) {
        if (!a || !b)
                return a == b;
        return same_text(a->user, b->user) && same_text(a->role, b->role) && same_text(a->type, b->type) &&
               same_text(a->level, b->level);
}

static bool same_profile(const struct nd_pod_profile *a, const struct nd_pod_profile *b) {
        if (!a || !b)
                return a == b;
        return same_text(a->type, b->type) && same_text(a->localhost, b->localhost);
}

static bool same_capabilities(const struct nd_pod_capabilities *a, const struct nd_pod_capabilities *b) {
        if (!a || !b)
                return a == b;
        return nd_shape_texts_equal(&a->add, &b->add) && nd_shape_texts_equal(&a->drop, &b->drop);
}

/* Compares the fields that a constraint may fill in. No context equals an empty one. */
static bool same_context(const struct nd_pod_container_context *a, const struct nd_pod_container_context *b) {
        static const struct nd_pod_container_context none = {};

        a = a ? a : &none;
        b = b ? b : &none;
        return a->allow_privilege_escalation == b->allow_privilege_escalation && a->read_only_root == b->read_only_root &&
               a->run_as_non_root == b->run_as_non_root && same_int(a->run_as_user, b->run_as_user) &&
               same_int(a->run_as_group, b->run_as_group) && same_capabilities(a->capabilities, b->capabilities) &&
               same_selinux(a->selinux, b->selinux) && same_profile(a->seccomp, b->seccomp);
}

static bool same_pod_context(const struct nd_pod_context *a, const struct nd_pod_context *b) {
        static const struct nd_pod_context none = {};

        a = a ? a : &none;
        b = b ? b : &none;
        return same_int(a->fs_group, b->fs_group) && a->supplemental_groups.count == b->supplemental_groups.count &&
               same_text(a->supplemental_groups_policy, b->supplemental_groups_policy) &&
               same_selinux(a->selinux, b->selinux) && same_profile(a->seccomp, b->seccomp);
}

/* Whether a constraint left the pod unchanged. */
static bool is_unchanged(const struct nd_pod *before, const struct nd_pod *after, bool ephemeral) {
        size_t checked = before->spec.init_containers.count + before->spec.containers.count;
        const struct nd_pod_container *a, *b;

        if (before->spec.host_users != after->spec.host_users ||
            !same_pod_context(before->spec.security, after->spec.security))
                return false;
        for (size_t i = 0; (!ephemeral || i < checked) && (a = nd_pod_container(&before->spec, i)); i++) {
                b = nd_pod_container(&after->spec, i);
                if (!same_context(a->security, b->security))
                        return false;
        }
        return true;
}

static void miss(struct nd_scc_choice *choice, const struct nd_scc *scc, const char *text) {
        nd_vector_push(&choice->misses, ((struct nd_scc_miss) {.scc = scc, .text = text}));
}

static const char *errors_text(const struct nd_scc *scc, const struct nd_field_errors *errors, struct nd_arena *arena) {
        nd_autotext struct nd_text text = ND_TEXT(REFUSAL_LENGTH);

        nd_vector_each (error, &errors->items) {
                nd_text_addf(&text, "%sprovider %s: ", error == errors->items.items ? "" : ", ",
                             nd_kube_or_empty(scc->metadata.name));
                nd_field_error_print(error, &text);
        }
        return nd_arena_strdup(arena, nd_text_get(&text));
}

void nd_scc_try(const struct nd_scc_request *request, const struct nd_scc *scc, const struct nd_pod *pod,
                struct nd_field_errors *errors, struct nd_scc_trial *ret) {
        struct nd_arena *arena = errors->arena;
        struct nd_scc bound;
        nd_autoerror struct nd_error *error = nd_scc_bind(scc, &request->namespace, arena, &bound);

        *ret = (struct nd_scc_trial) {.result = ND_SCC_MISFIT};
        if (error) {
                ret->failure = errors->quiet ? "" : nd_arena_strdup(arena, nd_error_text(error));
                return;
        }
        ret->pod = nd_pod_copy(pod, arena);
        nd_scc_fit(&bound, ret->pod, request->window, errors);
        if (errors->items.count == 0)
                ret->failure = nd_floor_obstacle(request->gates_off, scc, pod, arena);
        if (errors->items.count == 0 && !ret->failure)
                ret->result = request->update && !is_unchanged(pod, ret->pod, request->ephemeral) ? ND_SCC_FITS_CHANGED
                                                                                                  : ND_SCC_FITS;
}

/* Tries one constraint: returns whether it admits the pod. */
static bool try_one(const struct nd_scc_request *request, const struct nd_scc *scc, const struct nd_pod *pod,
                    struct nd_arena *arena, struct nd_scc_choice *choice) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena, .quiet = true};
        struct nd_scc_trial trial;

        nd_scc_try(request, scc, pod, &errors, &trial);
        if (trial.result != ND_SCC_FITS || (request->may_use && !request->may_use(scc, request->userdata)))
                return false;
        choice->scc = scc;
        choice->pod = trial.pod;
        return true;
}

/* Records why a constraint does not admit the pod. Keeps only the text. */
static void explain_one(const struct nd_scc_request *request, const struct nd_scc *scc, const struct nd_pod *pod,
                        struct nd_arena *arena, struct nd_arena *scratch, struct nd_scc_choice *choice) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = scratch};
        const char *name = nd_kube_or_empty(scc->metadata.name), *why;
        struct nd_scc_trial trial;

        nd_scc_try(request, scc, pod, &errors, &trial);
        if (trial.failure)
                why = nd_arena_format(arena, "provider %s: %s", name, trial.failure);
        else if (trial.result == ND_SCC_MISFIT)
                why = errors_text(scc, &errors, arena);
        else if (trial.result == ND_SCC_FITS_CHANGED)
                why = nd_arena_format(arena, "provider %s: would have to change the pod", name);
        else
                why = nd_arena_format(arena, "provider \"%s\": Forbidden: not usable by user or serviceaccount", name);
        miss(choice, scc, why);
}

static bool try_all(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                    struct nd_scc_choice *choice) {
        bool wants = nd_pod_has_user_namespace(pod) || request->userns != ND_SCC_USERNS_ASKED;
        const struct nd_scc **order = wants ? request->set->with_user_namespace : request->set->plain;

        for (size_t i = 0; i < request->set->count; i++)
                if (!nd_scc_is_out(order[i], pod) && try_one(request, order[i], pod, arena, choice))
                        return true;
        return false;
}

/* Formats the reasons of a denial. A constraint that fits here was not usable before, and its
 * access is not checked again. */
static void explain(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                    struct nd_scc_choice *choice) {
        bool wants = nd_pod_has_user_namespace(pod) || request->userns != ND_SCC_USERNS_ASKED;
        const struct nd_scc **order = wants ? request->set->with_user_namespace : request->set->plain;
        nd_autoarena struct nd_arena scratch = {};

        for (size_t i = 0; i < request->set->count; i++) {
                nd_arena_reset(&scratch);
                explain_one(request, order[i], pod, arena, &scratch, choice);
        }
}

static bool try_with_user_namespace(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                                    struct nd_scc_choice *choice) {
        struct nd_pod *with = nd_pod_copy(pod, arena);

        with->spec.host_users = ND_OFF;
        choice->set_user_namespace = try_all(request, with, arena, choice);
        return choice->set_user_namespace;
}

/* Returns why a pod of a namespace that requires user namespaces cannot have one; nullptr if it can
 * or does. */
static const char *required_refusal(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena) {
        const char *obstacle = nd_hostusers_obstacle(pod, request->host_network_gate);

        if (request->userns != ND_SCC_USERNS_REQUIRE || nd_pod_has_user_namespace(pod))
                return nullptr;
        if (pod->spec.host_users == ND_ON)
                return "the namespace requires user namespaces, but the pod sets spec.hostUsers to true";
        if (obstacle[0] != '\0')
                return nd_arena_format(arena, "the namespace requires user namespaces, but %s cannot be combined with one",
                                       obstacle);
        if (!request->may_set_user_namespace)
                return "the namespace requires user namespaces, but no schedulable node offers them to the pod's runtime class";
        return nullptr;
}

static void refuse(struct nd_scc_choice *choice, struct nd_arena *arena) {
        nd_autotext struct nd_text text = ND_TEXT(REFUSAL_LENGTH);

        nd_text_add(&text, "unable to validate against any security context constraint: [");
        nd_vector_each (m, &choice->misses)
                nd_text_addf(&text, "%s%s", m == choice->misses.items ? "" : ", ", m->text);
        nd_text_add(&text, "]");
        choice->refusal = nd_arena_strdup(arena, nd_text_get(&text));
}

bool nd_scc_may_set_user_namespace(const struct nd_scc_request *request, const struct nd_pod *pod) {
        return pod->spec.host_users == ND_UNSET && request->may_set_user_namespace && !request->update &&
               nd_hostusers_obstacle(pod, request->host_network_gate)[0] == '\0';
}

void nd_scc_choose(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                   struct nd_scc_choice *ret) {
        bool may_set = nd_scc_may_set_user_namespace(request, pod);
        bool first = may_set && request->userns != ND_SCC_USERNS_ASKED;

        *ret = (struct nd_scc_choice) {};
        ret->refusal = request->update ? nullptr : required_refusal(request, pod, arena);
        if (ret->refusal)
                return;
        if (first && try_with_user_namespace(request, pod, arena, ret))
                return;
        if (!(first && request->userns == ND_SCC_USERNS_REQUIRE) && try_all(request, pod, arena, ret))
                return;
        if (may_set && !first && try_with_user_namespace(request, pod, arena, ret))
                return;
        if (request->is_open && request->is_open(request->userdata)) {
                ret->refusal = "access to the constraints is not known yet";
                return;
        }
        /* the reasons are about the pod with the user namespace that the namespace asks for */
        if (first) {
                struct nd_pod *with = nd_pod_copy(pod, arena);

                with->spec.host_users = ND_OFF;
                pod = with;
        }
        explain(request, pod, arena, ret);
        refuse(ret, arena);
}
