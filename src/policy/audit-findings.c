/* SPDX-License-Identifier: Apache-2.0 */
/* audit-findings.c - what user namespaces hold back in a cluster, and pods that break a rule of
 * their namespace */
#include <string.h>

#include "policy/audit.h"
#include "policy/hostusers.h"

enum {
        TEXT_BYTES = 1024,
};

#define NESTED "nested-container"

const char *nd_audit_topic_name(enum nd_audit_topic topic) {
        static const char *const names[ND_AUDIT_TOPICS] = {
                [ND_AUDIT_NESTED_POD] = "nested-container-pod",
                [ND_AUDIT_RELYING_POD] = "user-namespace-constraint-pod",
                [ND_AUDIT_RELYING_GRANT] = "user-namespace-constraint-grant",
                [ND_AUDIT_WEAK_NODE] = "node-without-user-namespaces",
                [ND_AUDIT_HOST_MAP] = "host-id-map",
                [ND_AUDIT_REQUIRED_TEMPLATE] = "required-constraint-template",
                [ND_AUDIT_HOST_NETWORK] = "host-network-user-namespace",
                [ND_AUDIT_NOT_ADMITTED] = "violates-constraints",
                [ND_AUDIT_WITHOUT_NAMESPACE] = "violates-user-namespaces",
                [ND_AUDIT_POD_SECURITY] = "violates-pod-security",
        };

        return names[topic];
}

/* ---- what a constraint allows ---- */

static bool is_zero_in_ranges(const struct nd_scc_groups *groups) {
        if (!groups->type || nd_streq(groups->type, "RunAsAny"))
                return false; /* every constraint may leave groups open: restricted-v2 does */
        nd_list_each(range, &groups->ranges) if (range->min.set && range->min.value <= 0) return true;
        return false;
}

static bool allows_root(const struct nd_scc_user *user) {
        const char *type = nd_kube_or_empty(user->type);

        if (nd_streq(type, "RunAsAny"))
                return true;
        return (nd_streq(type, "MustRunAs") && user->uid.set && user->uid.value == 0) ||
               (nd_streq(type, "MustRunAsRange") && user->min.set && user->min.value <= 0);
}

/* Capabilities beyond those of restricted-v2, which does without a user namespace. */
static bool allows_capabilities(const struct nd_scc *scc) {
        const struct nd_shape_texts *const lists[] = {&scc->allowed_capabilities, &scc->default_add};

        for (size_t l = 0; l < nd_count_of(lists); l++)
                for (size_t i = 0; i < lists[l]->count; i++)
                        if (!nd_streq(lists[l]->items[i], "NET_BIND_SERVICE"))
                                return true;
        return false;
}

/* A range of its own instead of the namespace's. */
static bool has_fixed_users(const struct nd_scc_user *user) {
        return user->min.set || user->max.set || user->uid.set || nd_streq(nd_kube_or_empty(user->type), "MustRunAsNonRoot");
}

bool nd_audit_is_left_out(const char *namespace) {
        return nd_streq(namespace, "kube-system") || nd_streq(namespace, "nodens-system");
}

static void add_words(struct nd_text *text, const char *words) {
        nd_text_addf(text, "%s%s", text->length > 0 ? ", " : "", words);
}

const char *nd_audit_exposure(const struct nd_scc *scc, struct nd_arena *arena, bool *ret_severe) {
        nd_autotext struct nd_text text = ND_TEXT(TEXT_BYTES);

        *ret_severe = false;
        if (!nd_scc_requires_user_namespace(scc))
                return "";
        if (allows_root(&scc->user))
                add_words(&text, "root");
        else if (is_zero_in_ranges(&scc->fs_group) || is_zero_in_ranges(&scc->supplemental_groups))
                add_words(&text, "the group root");
        if (allows_capabilities(scc))
                add_words(&text, "added capabilities");
        if (scc->allow_privilege_escalation != ND_OFF)
                add_words(&text, "privilege escalation");
        *ret_severe = text.length > 0;
        if (text.length == 0 && has_fixed_users(&scc->user))
                nd_text_addf(&text, "users %lld to %lld",
                             (long long) (scc->user.uid.set ? scc->user.uid.value : scc->user.min.value),
                             (long long) (scc->user.uid.set   ? scc->user.uid.value
                                          : scc->user.max.set ? scc->user.max.value
                                                              : UINT32_MAX));
        return nd_arena_strdup(arena, nd_text_get(&text));
}

/* ---- pods ---- */

static const char *annotation(const struct nd_pod *pod, const char *own, const char *openshift) {
        const char *value = nd_shape_pairs_get(&pod->metadata.annotations, own);

        return nd_kube_or_empty(value ? value : nd_shape_pairs_get(&pod->metadata.annotations, openshift));
}

static const char *admitted_by(const struct nd_pod *pod) {
        return annotation(pod, "security.nodens.io/scc", "openshift.io/scc");
}

static void add(struct nd_audit_findings *found, enum nd_audit_topic topic, bool severe, const char *text) {
        if (found->count < ND_AUDIT_FINDINGS)
                found->items[found->count++] = (struct nd_audit_finding) {.topic = topic, .severe = severe, .text = text};
}

static void find_constraint(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload,
                            struct nd_arena *arena, struct nd_audit_findings *found) {
        const char *name = admitted_by(&workload->pod), *exposure;
        const struct nd_scc *scc = *name ? nd_map_get(&cluster->constraint_names, name) : nullptr;
        bool nested = nd_streq(name, NESTED), severe = true;

        if (!*name || workload->kind != ND_AUDIT_POD)
                return;
        if (!scc) {
                exposure = nested ? "root, added capabilities, privilege escalation" : "";
                if (!nested && nd_pod_has_user_namespace(&workload->pod) && cluster->known[ND_AUDIT_CONSTRAINT] &&
                    cluster->known[ND_AUDIT_CONSTRAINT_OPENSHIFT])
                        add(found, ND_AUDIT_RELYING_POD, true,
                            nd_arena_format(arena, "the constraint %s, which admitted it, does not exist any more", name));
        } else {
                exposure = nd_audit_exposure(scc, arena, &severe);
        }
        if (*exposure)
                add(found, nested ? ND_AUDIT_NESTED_POD : ND_AUDIT_RELYING_POD, severe,
                    nd_arena_format(arena, "without a user namespace %s allows on the node: %s", name, exposure));
}

static bool is_unmasked(const struct nd_pod *pod) {
        const struct nd_pod_container *c;

        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++)
                if (c->security && c->security->proc_mount && nd_streq(c->security->proc_mount, "Unmasked"))
                        return true;
        return false;
}

const char *nd_audit_handler(const struct nd_audit_cluster *cluster, const struct nd_pod *pod) {
        const char *class = nd_kube_or_empty(pod->spec.runtime_class);

        return *class ? nd_map_get(&cluster->classes, class) : "";
}

static void find_weak_node(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload,
                           struct nd_arena *arena, struct nd_audit_findings *found) {
        const struct nd_pod *pod = &workload->pod;
        const char *name = nd_kube_or_empty(pod->spec.node_name), *handler = nd_audit_handler(cluster, pod);
        const struct nd_audit_node *node = *name ? nd_map_get(&cluster->nodes, name) : nullptr;

        if (!node || workload->kind != ND_AUDIT_POD || (!nd_pod_has_user_namespace(pod) && !is_unmasked(pod)))
                return;
        if (node->too_old)
                add(found, ND_AUDIT_WEAK_NODE, true,
                    nd_arena_format(arena, "the kubelet of node %s has version %s, below %s", name,
                                    *node->version ? node->version : "unknown", cluster->minimum));
        else if (!handler || !nd_shape_texts_have(&node->handlers, handler))
                add(found, ND_AUDIT_WEAK_NODE, true,
                    nd_arena_format(arena, "node %s does not offer user namespaces%s%s", name,
                                    handler && *handler ? " to handler " : "", handler ? handler : ""));
}

static void find_host_map(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload,
                          struct nd_arena *arena, struct nd_audit_findings *found) {
        const char *uid = *workload->mirror ? workload->mirror : workload->uid;

        if (workload->kind == ND_AUDIT_POD && nd_pod_has_user_namespace(&workload->pod) && cluster->maps_known &&
            nd_streq(nd_kube_or_empty(workload->pod.spec.node_name), cluster->map_node) &&
            nd_map_has(&cluster->host_mapped, uid))
                add(found, ND_AUDIT_HOST_MAP, true,
                    nd_arena_format(arena, "hostUsers is false, but user 0 of a process is user 0 of node %s",
                                    cluster->map_node));
}

static void find_template(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload,
                          struct nd_arena *arena, struct nd_audit_findings *found) {
        const char *name = annotation(&workload->pod, "security.nodens.io/required-scc", "openshift.io/required-scc"),
                   *exposure;
        const struct nd_scc *scc = *name ? nd_map_get(&cluster->constraint_names, name) : nullptr;
        bool severe = true;

        if (workload->kind == ND_AUDIT_POD || workload->known_owner)
                return;
        exposure = scc ? nd_audit_exposure(scc, arena, &severe) : nd_streq(name, NESTED) ? "root" : "";
        if (*exposure)
                add(found, ND_AUDIT_REQUIRED_TEMPLATE, severe,
                    nd_arena_format(arena, "its pods require %s and would be created again after they are removed", name));
}

static void find_host_network(const struct nd_audit_workload *workload, struct nd_audit_findings *found) {
        if (workload->pod.spec.host_network && nd_pod_has_user_namespace(&workload->pod) &&
            (workload->kind == ND_AUDIT_POD || !workload->known_owner))
                add(found, ND_AUDIT_HOST_NETWORK, false,
                    "needs the gate UserNamespacesHostNetworkSupport: without it the pod cannot be created again or changed");
}

/* ---- violations ---- */

/* Whether the constraint still fits the pod as it is. */
static bool fits(const struct nd_audit_cluster *cluster, const struct nd_audit_namespace *namespace, const struct nd_scc *scc,
                 const struct nd_pod *pod, struct nd_arena *arena) {
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = arena, .quiet = true};
        struct nd_scc_request request = {.set = &cluster->set,
                                         .namespace = namespace->ranges,
                                         .host_network_gate = cluster->host_network_gate,
                                         .window = ND_SCC_WINDOW,
                                         .update = true};
        struct nd_scc_trial trial = {};

        nd_scc_try(&request, scc, pod, &errors, &trial);
        return trial.result == ND_SCC_FITS;
}

/* An unknown value counts as the strictest one, as the guard has it. */
static bool is_enforced(const struct nd_audit_namespace *namespace) {
        const char *label = namespace->constraints;

        return *label && !nd_streq(label, "off") && !nd_streq(label, "warn") && !nd_audit_is_left_out(namespace->name);
}

static bool is_required(const struct nd_audit_namespace *namespace) {
        return *namespace->user_namespaces && !nd_streq(namespace->user_namespaces, "default") && is_enforced(namespace);
}

static void find_not_admitted(const struct nd_audit_cluster *cluster, const struct nd_audit_namespace *namespace,
                              const struct nd_pod *pod, struct nd_arena *arena, struct nd_audit_findings *found) {
        const char *name = admitted_by(pod);
        const struct nd_scc *scc = *name ? nd_map_get(&cluster->constraint_names, name) : nullptr;

        if (!is_enforced(namespace) || cluster->constraints.count == 0)
                return;
        if (!*name)
                add(found, ND_AUDIT_NOT_ADMITTED, false, "it is older than " ND_AUDIT_LABEL_CONSTRAINTS "=enforce");
        else if (!scc)
                add(found, ND_AUDIT_NOT_ADMITTED, false,
                    nd_arena_format(arena, "the constraint %s, which admitted it, does not exist any more", name));
        else if (!fits(cluster, namespace, scc, pod, arena))
                add(found, ND_AUDIT_NOT_ADMITTED, false,
                    nd_arena_format(arena, "the constraint %s, which admitted it, does not fit it any more", name));
}

static void find_violations(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload,
                            struct nd_arena *arena, struct nd_audit_findings *found) {
        const struct nd_audit_namespace *namespace = nd_map_get(&cluster->namespaces, workload->namespace);
        struct nd_podsecurity_findings problems = {};
        nd_autotext struct nd_text text = ND_TEXT(TEXT_BYTES);

        if (!namespace || workload->kind != ND_AUDIT_POD || *workload->mirror)
                return;
        find_not_admitted(cluster, namespace, &workload->pod, arena, found);
        if (is_required(namespace) && !nd_pod_has_user_namespace(&workload->pod))
                add(found, ND_AUDIT_WITHOUT_NAMESPACE, false,
                    "it is older than " ND_AUDIT_LABEL_USER_NAMESPACES "=require, and hostUsers is not false");
        if (namespace->has_enforce_label)
                nd_podsecurity_evaluate(&namespace->enforce, &workload->pod, arena, &problems);
        if (problems.count == 0)
                return;
        nd_podsecurity_reasons(&problems, &text);
        add(found, ND_AUDIT_POD_SECURITY, false,
            nd_arena_format(arena, "not %s: %s", nd_podsecurity_level_name(namespace->enforce.level), nd_text_get(&text)));
}

void nd_audit_find(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload, struct nd_arena *arena,
                   struct nd_audit_findings *ret) {
        *ret = (struct nd_audit_findings) {};
        if (workload->finished)
                return;
        find_constraint(cluster, workload, arena, ret);
        find_weak_node(cluster, workload, arena, ret);
        find_host_map(cluster, workload, arena, ret);
        find_template(cluster, workload, arena, ret);
        find_host_network(workload, ret);
        find_violations(cluster, workload, arena, ret);
}

/* ---- grants ---- */

bool nd_audit_find_grant(const struct nd_audit_cluster *cluster, const struct nd_audit_grant *grant, struct nd_arena *arena,
                         struct nd_audit_finding *ret) {
        nd_autotext struct nd_text names = ND_TEXT(TEXT_BYTES);
        const char *who = nd_streq(grant->subject_kind, "ServiceAccount") ? "service account"
                          : nd_streq(grant->subject_kind, "Group")        ? "group"
                                                                          : "user";

        /* An administrator has the nodes anyway. */
        if (grant->role && grant->role->everything && !*grant->namespace)
                return false;
        nd_vector_each (scc, &cluster->constraints) {
                bool severe;

                if (!nd_audit_grant_covers(grant, *scc))
                        continue;
                (void) nd_audit_exposure(*scc, arena, &severe);
                if (severe)
                        add_words(&names, nd_kube_or_empty((*scc)->metadata.name));
        }
        if (names.length == 0)
                return false;
        *ret = (struct nd_audit_finding) {.topic = ND_AUDIT_RELYING_GRANT,
                                          .severe = true,
                                          .text = nd_arena_format(arena, "%s %s may use %s%s%s", who, grant->subject,
                                                                  nd_text_get(&names), *grant->role_name ? ", by role " : "",
                                                                  grant->role_name)};
        return true;
}
