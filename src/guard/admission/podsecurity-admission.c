/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-admission.c - see podsecurity-admission.h
 *
 *      object                            evaluated
 *      a pod, new or with new images     enforce, audit and warn
 *      a workload controller             audit and warn, on its template; never denied
 *      a namespace                       new labels that cannot be parsed are denied; a stricter
 *                                        level is tried on existing pods, as a warning
 *
 * Exempt namespaces, users and runtime classes are not evaluated, which is recorded in the audit
 * annotations. */

#include "guard/admission/podsecurity-admission.h"

static bool same_version(const struct nd_podsecurity_rule *a, const struct nd_podsecurity_rule *b) {
        return a->version.latest == b->version.latest && (a->version.latest || a->version.minor == b->version.minor);
}

static bool same_rule(const struct nd_podsecurity_rule *a, const struct nd_podsecurity_rule *b) {
        return a->level == b->level && same_version(a, b);
}

static bool is_of_namespaces(const struct guard_review *review) {
        return nd_streq(review->resource, "namespaces") && *review->group == '\0';
}

static bool is_of_pods(const struct guard_review *review) {
        return nd_streq(review->resource, "pods") && *review->group == '\0';
}

/* Subresources without a pod. All others are evaluated, unknown ones included. */
static bool is_without_pod(const char *subresource) {
        static const char *const without[] = {"exec", "attach",      "binding", "eviction",
                                              "log",  "portforward", "proxy",   "status"};

        for (size_t i = 0; i < nd_count_of(without); i++)
                if (nd_streq(subresource, without[i]))
                        return true;
        return false;
}

/* Reviews that pass regardless of the labels. */
static bool passes(const struct guard_standards *standards, const struct guard_review *review) {
        if (!standards->prefix || (review->operation != GUARD_CREATE && review->operation != GUARD_UPDATE))
                return true;
        return is_of_pods(review) ? is_without_pod(review->subresource) : *review->subresource != '\0';
}

static const char *exemption(const struct guard_standards *standards, const struct guard_review *review) {
        if (guard_standards_exempt(&standards->namespaces, review->namespace))
                return "namespace";
        return guard_standards_exempt(&standards->users, review->user.name) ? "user" : nullptr;
}

/* ---- namespaces ---- */

/* A change of a namespace's labels. */
struct change {
        struct nd_podsecurity_policy before, after;
        const char *complaint; /* about new labels that cannot be parsed; nullptr: none */
};

static const char *complaints(const struct nd_field_errors *errors, struct nd_arena *arena) {
        nd_autotext struct nd_text text = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_field_errors_print(errors, &text);
        return nd_arena_strdup(arena, nd_text_get(&text));
}

static void read_change(const struct guard_standards *standards, const struct guard_review *review, struct nd_arena *arena,
                        struct change *ret) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors was = {.arena = arena}, is = {.arena = arena};
        const char *now;

        nd_podsecurity_of_labels(&review->old_labels, standards->prefix, &standards->defaults, &ret->before, &was);
        nd_podsecurity_of_labels(&review->labels, standards->prefix, &standards->defaults, &ret->after, &is);
        now = complaints(&is, arena);
        ret->complaint = is.items.count > 0 && (review->operation == GUARD_CREATE || !nd_streq(now, complaints(&was, arena)))
                                 ? now
                                 : nullptr;
}

/* Whether existing pods must be scanned, since more is enforced than before. */
static bool is_stricter(const struct change *change) {
        const struct nd_podsecurity_rule *now = &change->after.enforce, *then = &change->before.enforce;

        return now->level != ND_LEVEL_PRIVILEGED && !same_rule(now, then) &&
               (!same_version(now, then) || now->level > then->level);
}

static void add_mode(struct nd_text *text, const struct guard_standards *standards, const struct guard_review *review,
                     const char *mode, const struct nd_podsecurity_rule *rule, struct nd_arena *arena) {
        const char *level = nd_arena_format(arena, "%s%s", standards->prefix, mode);
        const char *version = nd_arena_format(arena, "%s-version", level);

        if (rule->level != ND_LEVEL_PRIVILEGED &&
            (nd_shape_pairs_get(&review->labels, level) || nd_shape_pairs_get(&review->labels, version)))
                nd_text_addf(text, "%s%s=%s", text->length > 0 ? ", " : "", mode, guard_standards_rule(rule, arena));
}

/* Warns if labels are set on an exempt namespace, as they have no effect. */
static void warn_of_exemption(const struct guard_standards *standards, const struct guard_review *review,
                              const struct nd_podsecurity_policy *policy, struct nd_arena *arena,
                              struct guard_response *response) {
        nd_autotext struct nd_text modes = ND_TEXT(4096);

        if (guard_standards_are_privileged(policy) ||
            (same_rule(&policy->enforce, &standards->defaults.enforce) &&
             same_rule(&policy->audit, &standards->defaults.audit) && same_rule(&policy->warn, &standards->defaults.warn)))
                return;
        add_mode(&modes, standards, review, "enforce", &policy->enforce, arena);
        add_mode(&modes, standards, review, "audit", &policy->audit, arena);
        add_mode(&modes, standards, review, "warn", &policy->warn, arena);
        guard_response_warn(response,
                            nd_arena_format(arena,
                                            "namespace %s is exempt from Pod Security, and the policy (%s) will be ignored",
                                            nd_field_text(arena, review->name), nd_text_get(&modes)));
}

static void decide_namespace(const struct guard_standards *standards, const struct guard_review *review,
                             struct nd_arena *arena, struct guard_response *response) {
        struct change change;

        read_change(standards, review, arena, &change);
        if (change.complaint)
                guard_response_deny(response, 422, "Invalid",
                                    nd_arena_format(arena, "Namespace %s is invalid: %s", nd_field_text(arena, review->name),
                                                    change.complaint));
        else if (guard_standards_exempt(&standards->namespaces, review->namespace) &&
                 (review->operation == GUARD_CREATE || is_stricter(&change)))
                warn_of_exemption(standards, review, &change.after, arena, response);
}

/* ---- pods and workload controllers ---- */

static bool has_other_images(const struct nd_pod_container *a, size_t a_count, const struct nd_pod_container *b,
                             size_t b_count) {
        if (a_count != b_count)
                return true;
        for (size_t i = 0; i < a_count; i++)
                if (!nd_streq(nd_kube_or_empty(a[i].image), nd_kube_or_empty(b[i].image)))
                        return true;
        return false;
}

static const struct nd_pod_container *ephemeral_named(const struct nd_pod *pod, const char *name) {
        nd_list_each(container,
                     &pod->spec.ephemeral_containers) if (nd_streq(nd_kube_or_empty(container->name), name)) return container;
        return nullptr;
}

/* Whether an update changes a field that the standards evaluate. Of an existing pod only images can
 * change, and ephemeral containers can be added. */
static bool is_significant(const struct nd_pod *pod, const struct nd_pod *old) {
        const struct nd_pod_spec *a = &pod->spec, *b = &old->spec;

        if (has_other_images(a->containers.items, a->containers.count, b->containers.items, b->containers.count) ||
            has_other_images(a->init_containers.items, a->init_containers.count, b->init_containers.items,
                             b->init_containers.count))
                return true;
        nd_list_each(container, &a->ephemeral_containers) {
                const struct nd_pod_container *before = ephemeral_named(old, nd_kube_or_empty(container->name));

                if (!before || !nd_streq(nd_kube_or_empty(before->image), nd_kube_or_empty(container->image)))
                        return true;
        }
        return false;
}

/* Returns the violations of a level, with a text in front; nullptr: none. */
static const char *violations(const struct nd_podsecurity_rule *rule, const struct guard_review *review,
                              const struct nd_pod *pod, const char *prefix, struct nd_arena *arena) {
        nd_autotext struct nd_text text = ND_TEXT(ND_PODSECURITY_TEXT);
        struct nd_podsecurity_rule current = *rule;
        struct nd_podsecurity_findings findings;

        current.ignores_user_namespaces = review->gates_off & ND_FLOOR_BIT(ND_FLOOR_POD_SECURITY);
        nd_podsecurity_evaluate(&current, pod, arena, &findings);
        if (findings.count == 0)
                return nullptr;
        nd_podsecurity_details(&findings, &text);
        return nd_arena_format(arena, "%s PodSecurity \"%s\": %s", prefix, guard_standards_rule(rule, arena),
                               nd_text_get(&text));
}

static void evaluate(const struct guard_standards *standards, const struct guard_namespace *namespace,
                     const struct guard_review *review, const struct nd_pod *pod, struct nd_arena *arena,
                     struct guard_response *response) {
        const struct nd_podsecurity_policy *policy = namespace->policy ? namespace->policy : &standards->defaults;
        bool enforce = is_of_pods(review);
        const char *text;

        if (guard_standards_exempt_class(standards, pod->spec.runtime_class)) {
                guard_response_audit(response, "exempt", "runtimeClass");
                return;
        }
        if (namespace->policy_errors)
                guard_response_audit(response, "error",
                                     nd_arena_format(arena, "Failed to parse policy: %s", namespace->policy_errors));
        if (enforce)
                guard_response_audit(response, "enforce-policy", guard_standards_rule(&policy->enforce, arena));
        text = enforce ? violations(&policy->enforce, review, pod, "violates", arena) : nullptr;
        if (text)
                guard_response_deny(response, 403, "Forbidden",
                                    *review->name ? nd_arena_format(arena, "pods %s is forbidden: %s",
                                                                    nd_field_text(arena, review->name), text)
                                                  : nd_arena_format(arena, "pods is forbidden: %s", text));
        text = violations(&policy->audit, review, pod, "would violate", arena);
        if (text)
                guard_response_audit(response, "audit-violations", text);
        text = response->allowed ? violations(&policy->warn, review, pod, "would violate", arena) : nullptr;
        if (text)
                guard_response_warn(response, text);
}

static void decide_pod(const struct guard_standards *standards, const struct guard_namespace *namespace,
                       const struct guard_review *review, struct nd_arena *arena, struct guard_response *response) {
        const struct nd_podsecurity_policy *policy = namespace->policy ? namespace->policy : &standards->defaults;

        if (!namespace->policy_errors && guard_standards_are_privileged(policy)) {
                guard_response_audit(response, "enforce-policy", "privileged:latest");
                return;
        }
        if (!review->pod || (review->operation == GUARD_UPDATE && !review->old)) {
                guard_response_deny(response, 400, "BadRequest", "failed to decode pod");
                return;
        }
        if (review->operation == GUARD_CREATE || is_significant(review->pod, review->old))
                evaluate(standards, namespace, review, review->pod, arena, response);
}

static void decide_template(const struct guard_standards *standards, const struct guard_namespace *namespace,
                            const struct guard_review *review, struct nd_arena *arena, struct guard_response *response) {
        const struct nd_podsecurity_policy *policy = namespace->policy ? namespace->policy : &standards->defaults;

        if (!namespace->policy_errors && policy->warn.level == ND_LEVEL_PRIVILEGED &&
            policy->audit.level == ND_LEVEL_PRIVILEGED)
                return;
        if (review->template_error)
                guard_response_audit(response, "error",
                                     nd_arena_format(arena, "failed to decode object: %s", review->template_error));
        else if (review->workload)
                evaluate(standards, namespace, review, &review->workload->pod, arena, response);
}

enum guard_podsecurity_need guard_podsecurity_needs(const struct guard_standards *standards, const struct guard_store *store,
                                                    const struct guard_review *review, struct nd_arena *arena,
                                                    struct nd_podsecurity_rule *ret_rule) {
        struct change change;

        if (passes(standards, review))
                return GUARD_PODSECURITY_NEEDS_NOTHING;
        if (!is_of_namespaces(review))
                return exemption(standards, review) || guard_store_namespace(store, review->namespace)
                               ? GUARD_PODSECURITY_NEEDS_NOTHING
                               : GUARD_PODSECURITY_NEEDS_NAMESPACE;
        read_change(standards, review, arena, &change);
        if (review->operation != GUARD_UPDATE || change.complaint || !is_stricter(&change) ||
            guard_standards_exempt(&standards->namespaces, review->namespace))
                return GUARD_PODSECURITY_NEEDS_NOTHING;
        *ret_rule = change.after.enforce;
        return GUARD_PODSECURITY_NEEDS_PODS;
}

void guard_podsecurity_decide(const struct guard_standards *standards, const struct guard_store *store,
                              const struct guard_review *review, struct nd_arena *arena, struct guard_response *ret) {
        const struct guard_namespace *namespace = guard_store_namespace(store, review->namespace);
        const char *exempt;

        *ret = (struct guard_response) {.allowed = true};
        if (passes(standards, review))
                return;
        if (is_of_namespaces(review)) {
                decide_namespace(standards, review, arena, ret);
                return;
        }
        exempt = exemption(standards, review);
        if (exempt)
                guard_response_audit(ret, "exempt", exempt);
        else if (namespace && is_of_pods(review))
                decide_pod(standards, namespace, review, arena, ret);
        else if (namespace)
                decide_template(standards, namespace, review, arena, ret);
        else if (is_of_pods(review))
                guard_response_deny(ret, 500, "InternalError", "failed to lookup namespace");
        else
                guard_response_audit(ret, "error", "failed to lookup namespace");
}
