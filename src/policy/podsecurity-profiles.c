/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/podsecurity-profiles.h"

#include "policy/podsecurity-text.h"

/* ---- AppArmor ---- */

static bool apparmor_type_is_good(const struct nd_pod_profile *profile) {
        return nd_streq(nd_kube_or_empty(profile->type), "RuntimeDefault") ||
               nd_streq(nd_kube_or_empty(profile->type), "Localhost");
}

static void apparmor_annotations(const struct nd_pod *pod, struct nd_arena *arena, struct nd_podsecurity_names *ret) {
        static const char prefix[] = "container.apparmor.security.beta.kubernetes.io/";
        const struct nd_shape_pairs *annotations = &pod->metadata.annotations;

        for (size_t i = 0; i < annotations->count; i++) {
                const char *key = annotations->items[i].key, *value = annotations->items[i].value;

                if (!nd_has_prefix(key, prefix) || value[0] == '\0' || nd_streq(value, "runtime/default") ||
                    nd_has_prefix(value, "localhost/"))
                        continue;
                nd_autofree char *quoted = nd_text_quote(value);

                nd_podsecurity_names_add(ret, arena, nd_arena_format(arena, "%s=%s", key, quoted));
        }
        nd_podsecurity_names_sort(ret);
}

void nd_podsecurity_check_apparmor(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed,
                                   struct nd_arena *arena, struct nd_podsecurity_finding *finding) {
        const struct nd_pod_context *context = pod->spec.security;
        bool pod_is_bad = context && context->apparmor && !apparmor_type_is_good(context->apparmor);
        struct nd_podsecurity_names containers = {}, values = {}, annotations = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (pod_is_bad)
                nd_podsecurity_names_add(&values, arena, context->apparmor->type);
        nd_podsecurity_each_container(c, pod) {
                if (!c->security || !c->security->apparmor || apparmor_type_is_good(c->security->apparmor))
                        continue;
                nd_podsecurity_names_add(&containers, arena, c->name);
                nd_podsecurity_names_add(&values, arena, c->security->apparmor->type);
        }
        apparmor_annotations(pod, arena, &annotations);
        if (!pod_is_bad && containers.count == 0 && annotations.count == 0)
                return;

        nd_podsecurity_put_setters(&detail, pod_is_bad, &containers);
        if (annotations.count > 0)
                nd_text_addf(&detail, "%s%s", detail.length > 0 ? " and " : "",
                             nd_podsecurity_plural("annotation", "annotations", annotations.count));
        nd_podsecurity_names_unite(&values);
        for (size_t i = 0; i < annotations.count; i++)
                nd_podsecurity_names_add(&values, arena, annotations.items[i]);
        nd_text_add(&detail, " must not set AppArmor profile type to ");
        nd_podsecurity_put_names(&detail, &values, "\"");
        nd_podsecurity_conclude(
                finding, nd_podsecurity_plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.count),
                &detail, arena);
}

/* ---- SELinux ---- */

struct selinux_sins {
        struct nd_podsecurity_names types;
        bool user;
        bool role;
};

static bool collect_selinux(const struct nd_pod_selinux *options, const char *const *allowed, struct nd_arena *arena,
                            struct selinux_sins *sins) {
        bool bad_type, user, role;

        if (!options)
                return false;
        bad_type = !nd_podsecurity_is_in(allowed, options->type);
        user = nd_kube_or_empty(options->user)[0] != '\0';
        role = nd_kube_or_empty(options->role)[0] != '\0';
        if (bad_type)
                nd_podsecurity_names_add(&sins->types, arena, options->type);
        sins->user |= user;
        sins->role |= role;
        return bad_type || user || role;
}

void nd_podsecurity_check_selinux(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                  struct nd_podsecurity_finding *finding) {
        struct selinux_sins sins = {};
        bool pod_is_bad = pod->spec.security && collect_selinux(pod->spec.security->selinux, allowed, arena, &sins);
        struct nd_podsecurity_names containers = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) if (c->security && collect_selinux(c->security->selinux, allowed, arena, &sins))
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        nd_podsecurity_names_unite(&sins.types);
        nd_podsecurity_put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " set forbidden securityContext.seLinuxOptions: ");
        if (sins.types.count > 0) {
                nd_text_add(&detail, nd_podsecurity_plural("type ", "types ", sins.types.count));
                nd_podsecurity_put_names(&detail, &sins.types, "\"");
        }
        if (sins.user)
                nd_text_addf(&detail, "%suser may not be set", sins.types.count > 0 ? "; " : "");
        if (sins.role)
                nd_text_addf(&detail, "%srole may not be set", sins.types.count > 0 || sins.user ? "; " : "");
        nd_podsecurity_conclude(finding, "seLinuxOptions", &detail, arena);
}

/* ---- seccomp ---- */

static bool seccomp_annotation_is_good(const char *value) {
        return nd_streq(value, "runtime/default") || nd_streq(value, "docker/default") || nd_has_prefix(value, "localhost/");
}

static void collect_annotation(const struct nd_pod *pod, const char *key, struct nd_arena *arena,
                               struct nd_podsecurity_names *forbidden) {
        const char *value = nd_shape_pairs_get(&pod->metadata.annotations, key);

        if (!value || seccomp_annotation_is_good(value))
                return;
        nd_autofree char *quoted = nd_text_quote(value);

        nd_podsecurity_names_add(forbidden, arena, nd_arena_format(arena, "%s=%s", key, quoted));
}

void nd_podsecurity_check_seccomp_annotations(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed,
                                              struct nd_arena *arena, struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names forbidden = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        collect_annotation(pod, "seccomp.security.alpha.kubernetes.io/pod", arena, &forbidden);
        nd_podsecurity_each_container(c, pod) collect_annotation(
                pod, nd_arena_format(arena, "container.seccomp.security.alpha.kubernetes.io/%s", nd_kube_or_empty(c->name)),
                arena, &forbidden);
        if (forbidden.count == 0)
                return;
        nd_podsecurity_names_unite(&forbidden);
        nd_text_add(&detail, nd_podsecurity_plural("forbidden annotation ", "forbidden annotations ", forbidden.count));
        nd_podsecurity_put_names(&detail, &forbidden, "");
        nd_podsecurity_conclude(finding, "seccompProfile", &detail, arena);
}

static bool seccomp_is_good(const struct nd_pod_profile *profile) {
        return nd_streq(nd_kube_or_empty(profile->type), "Localhost") ||
               nd_streq(nd_kube_or_empty(profile->type), "RuntimeDefault");
}

/* Who sets a forbidden profile, and which containers have none. */
struct seccomp_sins {
        bool pod;
        struct nd_podsecurity_names containers;
        struct nd_podsecurity_names values;
        struct nd_podsecurity_names without;
};

static void collect_seccomp(const struct nd_pod *pod, struct nd_arena *arena, struct seccomp_sins *sins) {
        const struct nd_pod_profile *of_pod = pod->spec.security ? pod->spec.security->seccomp : nullptr;

        sins->pod = of_pod && !seccomp_is_good(of_pod);
        if (sins->pod)
                nd_podsecurity_names_add(&sins->values, arena, of_pod->type);
        nd_podsecurity_each_container(c, pod) {
                const struct nd_pod_profile *profile = c->security ? c->security->seccomp : nullptr;

                if (profile && !seccomp_is_good(profile)) {
                        nd_podsecurity_names_add(&sins->containers, arena, c->name);
                        nd_podsecurity_names_add(&sins->values, arena, profile->type);
                } else if (!profile && (!of_pod || sins->pod)) {
                        nd_podsecurity_names_add(&sins->without, arena, c->name);
                }
        }
        nd_podsecurity_names_unite(&sins->values);
}

static bool conclude_bad_seccomp(const struct seccomp_sins *sins, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (!sins->pod && sins->containers.count == 0)
                return false;
        nd_podsecurity_put_setters(&detail, sins->pod, &sins->containers);
        nd_text_add(&detail, " must not set securityContext.seccompProfile.type to ");
        nd_podsecurity_put_names(&detail, &sins->values, "\"");
        nd_podsecurity_conclude(finding, "seccompProfile", &detail, arena);
        return true;
}

void nd_podsecurity_check_seccomp_baseline(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed,
                                           struct nd_arena *arena, struct nd_podsecurity_finding *finding) {
        struct seccomp_sins sins = {};

        collect_seccomp(pod, arena, &sins);
        (void) conclude_bad_seccomp(&sins, arena, finding);
}

void nd_podsecurity_check_seccomp_restricted(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed,
                                             struct nd_arena *arena, struct nd_podsecurity_finding *finding) {
        struct seccomp_sins sins = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        collect_seccomp(pod, arena, &sins);
        if (conclude_bad_seccomp(&sins, arena, finding) || sins.without.count == 0)
                return;
        nd_text_add(&detail, "pod or ");
        nd_podsecurity_put_containers(&detail, &sins.without);
        nd_text_add(&detail, " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
        nd_podsecurity_conclude(finding, "seccompProfile", &detail, arena);
}
