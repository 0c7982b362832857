/* SPDX-License-Identifier: Apache-2.0 */
/* scc-refusal.c - see scc-refusal.h
 *
 *      pod would be admitted by userns-root in a user namespace, but serviceaccount shop:default
 *      may not use it (kubectl create rolebinding ...); a new grant takes effect within seconds;
 *      unable to validate against any security context constraint: [provider restricted-v2: ...,
 *      and 12 others: nodens lint ...]
 *
 * A grant comes first unless it gives access to the host, or root there. Then a change of the pod
 * comes first, and no command is printed.
 *
 * Names come from users. A command is printed only if its words need no quoting in a shell. */
#include "guard/admission/scc-refusal.h"

#include <string.h>

#define ACCOUNT "system:serviceaccount:"

enum {
        NAME_BYTES = 128,    /* of a name that is shown */
        PROBLEM_BYTES = 200, /* of one reason */
        EDITS_SHOWN = 3,
};

/* ---- words ---- */

static bool is_plain_character(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Whether a shell takes the text as one word, and a program does not take it as an option. */
static bool is_plain(const char *text) {
        if (!is_plain_character(*text) || strlen(text) > NAME_BYTES)
                return false;
        for (; *text; text++)
                if (!is_plain_character(*text) && !strchr("._:@-", *text))
                        return false;
        return true;
}

const char *guard_refusal_name(const char *name, struct nd_arena *arena) {
        nd_autotext struct nd_text cut = ND_TEXT(NAME_BYTES);

        if (is_plain(name))
                return name;
        nd_text_add_utf8(&cut, name, strlen(name));
        return nd_arena_format(arena, "%s%s", nd_field_text(arena, nd_text_get(&cut)), cut.overflow ? "..." : "");
}

static const char *name_of(const struct nd_scc *scc) {
        return nd_kube_or_empty(scc->metadata.name);
}

const char *guard_refusal_subject(const struct guard_subject *subject, struct nd_arena *arena) {
        bool account = nd_has_prefix(subject->name, ACCOUNT);

        return nd_arena_format(arena, "%s %s", account ? "serviceaccount" : "user",
                               guard_refusal_name(account ? subject->name + strlen(ACCOUNT) : subject->name, arena));
}

static const struct guard_subject *subject_of(const struct guard_refusal *r) {
        return r->service_account->name ? r->service_account : r->user;
}

/* ---- the grant ---- */

/* Returns the role for this constraint, from our manifest or OpenShift's; nullptr: neither
 * exists. */
static const char *role_for(const struct guard_refusal *r, const char *constraint) {
        static const char *const formats[] = {"nodens:scc:", "system:openshift:scc:"};

        for (size_t i = 0; i < nd_count_of(formats); i++) {
                const char *role = nd_arena_format(r->arena, "%s%s", formats[i], constraint);

                if (guard_rbac_role_grants(r->rbac, role, constraint))
                        return role;
        }
        return nullptr;
}

/* Returns a name for the binding: "userns-root-default". */
static const char *binding_name(const struct guard_refusal *r, const char *constraint, const char *subject) {
        const char *last = strrchr(subject, ':');
        char *name = nd_arena_format(r->arena, "%s-%s", constraint, last ? last + 1 : subject);

        for (char *at = name; *at; at++)
                if (!is_plain_character(*at) && *at != '.')
                        *at = '-';
        return name;
}

/* Returns how an administrator grants the constraint. */
static const char *command(const struct guard_refusal *r, const struct nd_scc *scc) {
        const char *subject = subject_of(r)->name, *namespace = r->review->namespace, *constraint = name_of(scc);
        bool account = nd_has_prefix(subject, ACCOUNT);
        const char *role = role_for(r, constraint);

        if (!role || !is_plain(role) || !is_plain(subject) || !is_plain(namespace))
                return nd_arena_format(r->arena, "grant it the verb use on securitycontextconstraints.%s %s", r->rbac->group,
                                       guard_refusal_name(constraint, r->arena));
        return nd_arena_format(r->arena, "kubectl create rolebinding %s -n %s --clusterrole %s --%s %s",
                               binding_name(r, constraint, subject), namespace, role, account ? "serviceaccount" : "user",
                               account ? subject + strlen(ACCOUNT) : subject);
}

/* ---- the change ---- */

static const char *prefix_of(const struct guard_refusal *r) {
        return r->review->workload ? r->review->workload->prefix : "";
}

/* Returns "restricted-v2 without spec.hostPID, with spec.x: false". */
static const char *change_text(const struct guard_refusal *r, const struct nd_scc_advice *advice) {
        nd_autotext struct nd_text text = ND_TEXT(GUARD_REFUSAL_BYTES / 2);

        nd_text_add(&text, guard_refusal_name(name_of(advice->change), r->arena));
        for (size_t i = 0; i < advice->edit_count && i < EDITS_SHOWN; i++) {
                const struct nd_advice_edit *edit = &advice->edits[i];

                nd_text_addf(&text, "%s %s %s%s%s%s", i > 0 ? "," : "", edit->value ? "with" : "without", prefix_of(r),
                             edit->path, edit->value ? ": " : "", nd_kube_or_empty(edit->value));
        }
        if (advice->edit_count > EDITS_SHOWN)
                nd_text_addf(&text, ", and %zu more changes", advice->edit_count - EDITS_SHOWN);
        return nd_arena_strdup(r->arena, nd_text_get(&text));
}

/* ---- the sentence ---- */

static bool gives_host_access(const struct nd_scc *scc) {
        return scc->allow_privileged || scc->allow_host_dir || scc->allow_host_network || scc->allow_host_ports ||
               scc->allow_host_pid || scc->allow_host_ipc ||
               (nd_streq(nd_kube_or_empty(scc->user.type), "RunAsAny") && !nd_scc_requires_user_namespace(scc));
}

/* The defaults were not filled in, although a usable constraint has them. */
static const struct nd_scc *unfilled(const struct guard_refusal *r, const struct nd_scc_advice *advice) {
        if (!r->request->update || r->review->operation != GUARD_CREATE)
                return nullptr;
        for (size_t i = 0; i < advice->near_count; i++)
                if (advice->near[i].usable && advice->near[i].fits_changed)
                        return advice->near[i].scc;
        return nullptr;
}

/* Returns the usable constraint that would admit the pod if a node offered user namespaces;
 * nullptr: none. */
static const struct nd_scc *lacking_node(const struct guard_refusal *r) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = *r->request;

        if (request.update || request.may_set_user_namespace)
                return nullptr;
        request.may_set_user_namespace = true;
        nd_scc_choose(&request, r->pod, r->arena, &choice);
        return choice.scc;
}

/* Returns the usable constraint that would admit the pod if the version floor covered it;
 * nullptr: none. */
static const struct nd_scc *lacking_floor(const struct guard_refusal *r) {
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = *r->request;

        if (request.gates_off == 0)
                return nullptr;
        request.gates_off = 0;
        nd_scc_choose(&request, r->pod, r->arena, &choice);
        return choice.scc;
}

static const char *grant_text(const struct guard_refusal *r, const struct nd_scc_advice *advice) {
        const char *who = guard_refusal_subject(subject_of(r), r->arena),
                   *name = guard_refusal_name(name_of(advice->grant), r->arena);

        if (r->request->update)
                return nd_arena_format(r->arena, "the pod as it is fits %s, which %s may not use", name, who);
        return nd_arena_format(r->arena, "pod would be admitted by %s%s, but %s may not use it", name,
                               advice->grant_user_namespace ? " in a user namespace" : "", who);
}

/* Adds a part only if it fits whole: half a command is worse than none. */
static void add_whole(struct nd_text *text, const char *part) {
        if (text->length + strlen(part) <= text->ceiling)
                nd_text_add(text, part);
}

static void add_sentence(const struct guard_refusal *r, const struct nd_scc_advice *advice, struct nd_text *text) {
        const struct nd_scc *scc = unfilled(r, advice), *nodeless = lacking_node(r);
        const struct nd_scc *floorless = lacking_floor(r);
        bool grant_first = !nodeless && !floorless && advice->grant && (!advice->change || !gives_host_access(advice->grant));

        if (r->request->set->count == 0)
                nd_text_add(text, "the cluster has no security context constraints: apply nodens-guard manifest constraints");
        else if (scc)
                nd_text_addf(text,
                             "%s admits the pod only with its defaults, which the mutating webhook did not fill in: "
                             "create the pod again",
                             guard_refusal_name(name_of(scc), r->arena));
        else if (floorless)
                nd_text_addf(text,
                             "pod would be admitted by %s, which relies on user namespaces, but the version floor does not "
                             "guarantee that all kubelets honour them: raise NodeVersionFloor " ND_FLOOR_NAME
                             " (`kubectl get nodeversionfloor " ND_FLOOR_NAME "` shows what it waits for)",
                             guard_refusal_name(name_of(floorless), r->arena));
        else if (nodeless)
                nd_text_addf(text,
                             "pod would be admitted by %s in a user namespace, but no schedulable node offers user "
                             "namespaces",
                             guard_refusal_name(name_of(nodeless), r->arena));
        else if (grant_first)
                nd_text_add(text, grant_text(r, advice));
        else if (advice->change)
                nd_text_addf(text, "pod would be admitted by %s", change_text(r, advice));
        else
                nd_text_addf(text, "no security context constraint %s",
                             r->request->update ? "fits the pod as it is" : "admits the pod");
        if (grant_first && !scc && !gives_host_access(advice->grant))
                add_whole(text, nd_arena_format(r->arena, " (%s); a new grant takes effect within seconds",
                                                command(r, advice->grant)));
        if ((grant_first || nodeless || floorless) && advice->change)
                add_whole(text, nd_arena_format(r->arena, "; or by %s", change_text(r, advice)));
        if (!grant_first && !nodeless && !floorless && advice->grant)
                add_whole(text, nd_arena_format(r->arena, "; as it is it needs %s, which %s may not use",
                                                guard_refusal_name(name_of(advice->grant), r->arena),
                                                guard_refusal_subject(subject_of(r), r->arena)));
}

/* ---- near misses ---- */

static const char *near_text(const struct guard_refusal *r, const struct nd_scc_near *near) {
        nd_autotext struct nd_text problem = ND_TEXT(GUARD_REFUSAL_BYTES), cut = ND_TEXT(PROBLEM_BYTES);

        if (near->first.path) {
                nd_text_add(&problem, prefix_of(r));
                nd_field_error_print(&near->first, &problem);
        } else {
                nd_text_add(&problem, near->failure);
        }
        nd_text_add_utf8(&cut, nd_text_get(&problem), problem.length);
        return nd_arena_format(r->arena, "provider %s%s: %s%s%s", guard_refusal_name(name_of(near->scc), r->arena),
                               near->usable ? "" : ", if granted", nd_text_get(&cut), cut.overflow ? "..." : "",
                               near->problems > 1 ? nd_arena_format(r->arena, " (and %zu more)", near->problems - 1) : "");
}

static const char *others_text(const struct guard_refusal *r, size_t count) {
        const char *user = r->user->name, *namespace = r->review->namespace;
        bool plain = is_plain(user) && is_plain(namespace);

        return nd_arena_format(r->arena, "and %zu other%s: nodens lint --json%s%s%s%s FILE", count, count == 1 ? "" : "s",
                               plain ? " --as " : "", plain ? user : "", plain ? " --namespace " : "", plain ? namespace : "");
}

static void add_misses(const struct guard_refusal *r, const struct nd_scc_advice *advice, struct nd_text *text) {
        static const char head[] = "; unable to validate against any security context constraint: [";
        size_t room = GUARD_REFUSAL_BYTES - strlen(others_text(r, r->request->set->count)) - strlen(", ]");
        size_t left = advice->others + advice->near_count;
        const char *gap = "";

        if (advice->near_count == 0 || text->length + strlen(head) > room)
                return;
        nd_text_add(text, head);
        for (size_t i = 0; i < advice->near_count; i++) {
                const char *one = near_text(r, &advice->near[i]);

                if (text->length + strlen(gap) + strlen(one) > room)
                        continue;
                nd_text_addf(text, "%s%s", gap, one);
                gap = ", ";
                left--;
        }
        if (left > 0)
                nd_text_addf(text, "%s%s", gap, others_text(r, left));
        nd_text_add(text, "]");
}

const char *guard_refusal_text(const struct guard_refusal *refusal) {
        nd_autotext struct nd_text text = ND_TEXT(GUARD_REFUSAL_BYTES), valid = ND_TEXT(GUARD_REFUSAL_BYTES);
        struct nd_scc_advice advice;

        nd_scc_advise(refusal->request, refusal->pod, refusal->arena, &advice);
        add_sentence(refusal, &advice, &text);
        add_misses(refusal, &advice, &text);
        nd_text_add_utf8(&valid, nd_text_get(&text), text.length);
        return nd_arena_strdup(refusal->arena, nd_text_get(&valid));
}
