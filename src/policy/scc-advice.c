/* SPDX-License-Identifier: Apache-2.0 */
/* scc-advice.c - see scc-advice.h
 *
 * Each constraint is tried on the pod as written and, if hostUsers: false may be set, on the pod
 * with a user namespace; the better result counts. Changes are looked for only with the constraints
 * that nearly fit: their errors are turned into edits, and the edited pod is chosen for again.
 * The memory of a trial is not kept: there may be hundreds of constraints, and a trial copies the
 * pod. */
#include "policy/scc-advice.h"

#include <string.h>

#include "policy/hostusers.h"
#include "policy/scc-edit.h"

enum {
        ROUNDS = 3, /* an edit may uncover another error */
};

struct search {
        const struct nd_scc_request *request;
        const struct nd_pod *pods[2]; /* the ways in which the pod may be admitted */
        size_t pod_count;
        struct nd_arena *arena;
        struct nd_arena scratch; /* of one trial */
        struct nd_scc_advice *advice;
        struct nd_scc_near usable[ND_SCC_NEAR]; /* candidates for a change */
        size_t usable_count;
};

static bool is_usable(const struct nd_scc_request *request, const struct nd_scc *scc) {
        return !request->may_use || request->may_use(scc, request->userdata);
}

/* Sets the pods on which constraints are tried, in the order of nd_scc_choose(). */
static void list_pods(struct search *s, const struct nd_pod *pod) {
        bool may_set = nd_scc_may_set_user_namespace(s->request, pod);
        bool first = may_set && s->request->userns != ND_SCC_USERNS_ASKED;
        struct nd_pod *with = nd_pod_copy(pod, s->arena);

        with->spec.host_users = ND_OFF;
        if (first)
                s->pods[s->pod_count++] = with;
        if (!first || s->request->userns != ND_SCC_USERNS_REQUIRE)
                s->pods[s->pod_count++] = pod;
        if (may_set && !first)
                s->pods[s->pod_count++] = with;
}

/* Inserts a constraint into a short list, which is sorted by the number of problems. */
static void rank(struct nd_scc_near *list, size_t *count, const struct nd_scc_near *near) {
        size_t at = *count;

        while (at > 0 && list[at - 1].problems * 2 + !list[at - 1].usable > near->problems * 2 + !near->usable)
                at--;
        if (at == ND_SCC_NEAR)
                return;
        if (*count < ND_SCC_NEAR)
                (*count)++;
        memmove(&list[at + 1], &list[at], (*count - at - 1) * sizeof *list);
        list[at] = *near;
}

static void note_grant(struct search *s, const struct nd_scc *scc, const struct nd_pod *pod) {
        const struct nd_scc *best = s->advice->grant;
        bool
                requires
        = nd_scc_requires_user_namespace(scc);

        if (best && (nd_scc_requires_user_namespace(best) != requires ? !requires : !nd_scc_is_stricter(scc, best)))
                return;
        s->advice->grant = scc;
        s->advice->grant_user_namespace = nd_pod_has_user_namespace(pod);
}

static struct nd_field_error keep_error(const struct nd_field_error *error, struct nd_arena *arena) {
        return (struct nd_field_error) {.problem = error->problem,
                                        .path = nd_arena_strdup(arena, error->path),
                                        .value = error->value ? nd_arena_strdup(arena, error->value) : nullptr,
                                        .detail = nd_arena_strdup(arena, error->detail)};
}

/* Returns the first error about a field that the pod sets: others follow from such a field, as the
 * AppArmor profile of a privileged container does. */
static const struct nd_field_error *telling_error(const struct nd_field_errors *errors, const struct nd_scc *scc,
                                                  const struct nd_pod *pod) {
        struct nd_pod *copy = errors->items.count > 1 ? nd_pod_copy(pod, errors->arena) : nullptr;
        struct nd_advice_edit edit;

        for (size_t i = 0; copy && i < errors->items.count; i++)
                if (nd_scc_edit(scc, &errors->items.items[i], copy, errors->arena, &edit))
                        return &errors->items.items[i];
        return &errors->items.items[0];
}

/* Returns whether the constraint fits. */
static bool try_pod(struct search *s, const struct nd_scc *scc, const struct nd_pod *pod, struct nd_scc_near *best) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &s->scratch};
        struct nd_scc_near near = {.scc = scc, .usable = best->usable};
        struct nd_scc_trial trial;

        nd_arena_reset(&s->scratch);
        nd_scc_try(s->request, scc, pod, &errors, &trial);
        if (trial.result == ND_SCC_FITS)
                return true;
        near.problems = errors.items.count > 0 ? errors.items.count : 1;
        if (best->problems > 0 && near.problems >= best->problems)
                return false;
        if (errors.items.count > 0)
                near.first = keep_error(telling_error(&errors, scc, pod), s->arena);
        else
                near.failure = trial.failure ? nd_arena_strdup(s->arena, trial.failure) : "would have to change the pod";
        near.fits_changed = trial.result == ND_SCC_FITS_CHANGED;
        *best = near;
        return false;
}

static void try_constraint(struct search *s, const struct nd_scc *scc) {
        struct nd_scc_near best = {.scc = scc, .usable = is_usable(s->request, scc)};

        for (size_t i = 0; i < s->pod_count; i++)
                if (try_pod(s, scc, s->pods[i], &best)) {
                        note_grant(s, scc, s->pods[i]);
                        return;
                }
        rank(s->advice->near, &s->advice->near_count, &best);
        if (best.usable)
                rank(s->usable, &s->usable_count, &best);
}

/* ---- changes ---- */

/* hostUsers: false is never suggested if no node offers user namespaces. */
static bool may_edit(const struct search *s, const struct nd_field_error *error, const struct nd_pod *pod) {
        return !nd_streq(error->path, "spec.hostUsers") ||
               (s->request->may_set_user_namespace && nd_hostusers_obstacle(pod, s->request->host_network_gate)[0] == '\0');
}

/* Edits the pod by the errors of one round. Returns the number of errors, or ND_SCC_EDITS + 1 if
 * one of them has no edit. */
static size_t edit_once(const struct search *s, const struct nd_scc *scc, bool user_namespace, struct nd_pod *pod,
                        struct nd_scc_advice *draft) {
        nd_autoarena struct nd_arena scratch = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &scratch};
        struct nd_pod *tried = nd_pod_copy(pod, &scratch);
        struct nd_scc_trial trial;
        size_t before = draft->edit_count;

        if (user_namespace)
                tried->spec.host_users = ND_OFF;
        nd_scc_try(s->request, scc, tried, &errors, &trial);
        if (trial.failure)
                return ND_SCC_EDITS + 1;
        nd_vector_each (error, &errors.items) {
                if (draft->edit_count == ND_SCC_EDITS)
                        return ND_SCC_EDITS + 1;
                if (may_edit(s, error, pod))
                        draft->edit_count += nd_scc_edit(scc, error, pod, s->arena, &draft->edits[draft->edit_count]);
        }
        /* an error without an edit may be gone with the edit of another */
        return errors.items.count > 0 && draft->edit_count == before ? ND_SCC_EDITS + 1 : errors.items.count;
}

static bool is_admitted(const struct search *s, const struct nd_scc *scc, const struct nd_pod *pod) {
        nd_autoarena struct nd_arena scratch = {};
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        const struct nd_scc_set one = {.plain = &scc, .with_user_namespace = &scc, .count = 1};
        struct nd_scc_request request = *s->request;

        request.set = &one;
        request.is_open = nullptr;
        nd_scc_choose(&request, pod, &scratch, &choice);
        return choice.scc != nullptr;
}

static bool sets_user_namespace(const struct nd_scc_advice *advice) {
        for (size_t i = 0; i < advice->edit_count; i++)
                if (nd_streq(advice->edits[i].path, "spec.hostUsers"))
                        return true;
        return false;
}

/* Fewer edits are better; with as many, hostUsers: false, which keeps the user of the pod. */
static bool is_better(const struct nd_scc_advice *old, const struct nd_scc_advice *new) {
        if (!old->change || new->edit_count != old->edit_count)
                return !old->change || new->edit_count < old->edit_count;
        return sets_user_namespace(new) && !sets_user_namespace(old);
}

static void find_change(struct search *s, const struct nd_pod *original, const struct nd_scc *scc, bool user_namespace) {
        struct nd_pod *pod = nd_pod_copy(original, s->arena);
        struct nd_scc_advice draft = {.change = scc};
        size_t left = 1;

        for (int round = 0; round < ROUNDS && left > 0 && left <= ND_SCC_EDITS; round++)
                left = edit_once(s, scc, user_namespace, pod, &draft);
        if (draft.edit_count == 0 || !is_better(s->advice, &draft) || !is_admitted(s, scc, pod))
                return;
        s->advice->change = scc;
        s->advice->edit_count = draft.edit_count;
        memcpy(s->advice->edits, draft.edits, sizeof draft.edits);
}

static void find_changes(struct search *s, const struct nd_pod *pod) {
        for (size_t i = 0; i < s->usable_count; i++)
                for (size_t j = 0; j < s->pod_count; j++)
                        find_change(s, pod, s->usable[i].scc, nd_pod_has_user_namespace(s->pods[j]));
}

/* What is named by an advice is not repeated. */
static void drop_named(struct nd_scc_advice *advice) {
        size_t kept = 0;

        for (size_t i = 0; i < advice->near_count; i++)
                if (advice->near[i].scc != advice->change)
                        advice->near[kept++] = advice->near[i];
        advice->near_count = kept;
}

void nd_scc_advise(const struct nd_scc_request *request, const struct nd_pod *pod, struct nd_arena *arena,
                   struct nd_scc_advice *ret) {
        struct search s = {.request = request, .arena = arena, .advice = ret};
        bool wants = nd_pod_has_user_namespace(pod) || request->userns != ND_SCC_USERNS_ASKED;
        const struct nd_scc **order = wants ? request->set->with_user_namespace : request->set->plain;

        *ret = (struct nd_scc_advice) {};
        list_pods(&s, pod);
        for (size_t i = 0; i < request->set->count; i++)
                try_constraint(&s, order[i]);
        nd_arena_done(&s.scratch);
        if (!request->update)
                find_changes(&s, pod);
        drop_named(ret);
        ret->others = request->set->count - ret->near_count - (ret->grant ? 1 : 0) - (ret->change ? 1 : 0);
}
