/* SPDX-License-Identifier: Apache-2.0 */
/* scc-profiles.c - compares SELinux, seccomp and AppArmor settings of a pod with a constraint */
#include <string.h>

#include "policy/scc-fitting.h"

#define APPARMOR_CONTAINER "container.apparmor.security.beta.kubernetes.io/"

/* ---- SELinux ---- */

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static struct nd_shape_texts categories(struct nd_arena *arena, const char *text) {
        struct nd_shape_texts list = {};
        char *rest = nd_arena_strdup(arena, text);

        for (const char *c = text - 1; c; c = strchr(c + 1, ','))
                list.count++;
        list.items = nd_arena_alloc(arena, list.count, sizeof *list.items);
        for (size_t i = 0; i < list.count; i++)
                list.items[i] = strsep(&rest, ",");
        qsort(list.items, list.count, sizeof *list.items, compare_texts);
        return list;
}

/* Equal sensitivity and equal sets of categories, in any order. */
static bool levels_are_equal(struct nd_arena *arena, const char *expected, const char *actual) {
        const char *a = strchr(expected, ':'), *b = strchr(actual, ':');
        struct nd_shape_texts x, y;

        if (nd_streq(expected, actual))
                return true;
        if (!a || !b || a - expected != b - actual || memcmp(expected, actual, (size_t) (a - expected)) != 0)
                return false;
        x = categories(arena, a + 1);
        y = categories(arena, b + 1);
        if (x.count != y.count)
                return false;
        for (size_t i = 0; i < x.count; i++)
                if (!nd_streq(x.items[i], y.items[i]))
                        return false;
        return true;
}

static void validate_selinux_part(struct nd_scc_fitting *f, const char *expected, const char *actual,
                                  const struct nd_scc_spot *spot, const char *field) {
        if (!nd_scc_is(expected, actual))
                nd_scc_fitting_error(f, spot, field, ND_FIELD_INVALID, nd_field_text(f->arena, nd_kube_or_empty(actual)),
                                     nd_arena_format(f->arena, "must be %s", nd_kube_or_empty(expected)));
}

void nd_scc_validate_selinux(struct nd_scc_fitting *f, const struct nd_pod_selinux *actual, const struct nd_scc_spot *spot) {
        const struct nd_pod_selinux *expected = f->scc->selinux.options;

        if (!nd_scc_is(f->scc->selinux.type, "MustRunAs") || !expected || actual == expected)
                return;
        if (!actual) {
                nd_scc_fitting_error(f, spot, "seLinuxOptions", ND_FIELD_REQUIRED, nullptr, "");
                return;
        }
        if (!levels_are_equal(f->arena, nd_kube_or_empty(expected->level), nd_kube_or_empty(actual->level)))
                validate_selinux_part(f, expected->level, actual->level, spot, "seLinuxOptions.level");
        validate_selinux_part(f, expected->role, actual->role, spot, "seLinuxOptions.role");
        validate_selinux_part(f, expected->type, actual->type, spot, "seLinuxOptions.type");
        validate_selinux_part(f, expected->user, actual->user, spot, "seLinuxOptions.user");
}

/* ---- seccomp ---- */

static bool is_runtime_default(const char *profile) {
        return nd_streq(profile, "runtime/default") || nd_streq(profile, "docker/default");
}

/* Returns a field in the syntax of constraints; "" if it is not set. The annotations that this
 * syntax comes from are ignored: current kubelets do not read them, so they do not affect how a
 * container runs. */
static const char *seccomp_text(struct nd_arena *arena, const struct nd_pod_profile *profile) {
        if (!profile)
                return "";
        if (nd_scc_is(profile->type, "Unconfined"))
                return "unconfined";
        if (nd_scc_is(profile->type, "RuntimeDefault"))
                return "runtime/default";
        if (nd_scc_is(profile->type, "Localhost") && profile->localhost)
                return nd_arena_format(arena, "localhost/%s", profile->localhost);
        return "";
}

static struct nd_pod_profile *seccomp_field(struct nd_arena *arena, const char *text) {
        struct nd_pod_profile *profile = nd_arena_new(arena, struct nd_pod_profile);

        if (nd_streq(text, "unconfined"))
                profile->type = "Unconfined";
        else if (is_runtime_default(text))
                profile->type = "RuntimeDefault";
        else if (nd_has_prefix(text, "localhost/") && text[strlen("localhost/")] != '\0')
                *profile = (struct nd_pod_profile) {.type = "Localhost", .localhost = text + strlen("localhost/")};
        else
                return nullptr;
        return profile;
}

/* Returns the first profile of the list that is not the wildcard; nullptr if there is none. */
static const char *default_profile(const struct nd_scc *scc) {
        for (size_t i = 0; i < scc->seccomp_profiles.count; i++)
                if (!nd_streq(scc->seccomp_profiles.items[i], "*"))
                        return scc->seccomp_profiles.items[i];
        return nullptr;
}

void nd_scc_generate_seccomp(struct nd_scc_fitting *f, struct nd_pod_context *context) {
        const char *profile = default_profile(f->scc);

        if (!context->seccomp && profile)
                context->seccomp = seccomp_field(f->arena, profile);
}

static const char *profiles_text(struct nd_arena *arena, const struct nd_shape_texts *profiles) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        for (size_t i = 0; i < profiles->count; i++)
                if (!nd_streq(profiles->items[i], "*"))
                        nd_text_addf(&text, "%s%s", text.length > 0 ? " " : "", profiles->items[i]);
        return nd_arena_strdup(arena, nd_text_get(&text));
}

void nd_scc_validate_seccomp(struct nd_scc_fitting *f, const struct nd_pod_profile *set, const struct nd_scc_spot *spot) {
        const struct nd_shape_texts *allowed = &f->scc->seccomp_profiles;
        const char *profile = seccomp_text(f->arena, set);
        bool any = nd_shape_texts_have(allowed, "*");

        if (any)
                return;
        if (!default_profile(f->scc)) {
                if (profile[0] != '\0')
                        nd_scc_fitting_error(f, spot, "seccompProfile", ND_FIELD_FORBIDDEN, nullptr, "seccomp may not be set");
                return;
        }
        if (nd_shape_texts_have(allowed, profile))
                return;
        if (is_runtime_default(profile) &&
            (nd_shape_texts_have(allowed, "runtime/default") || nd_shape_texts_have(allowed, "docker/default")))
                return;
        nd_scc_fitting_error(f, spot, "seccompProfile", ND_FIELD_FORBIDDEN, nullptr,
                             nd_arena_format(f->arena, "%s is not an allowed seccomp profile. Valid values are [%s]", profile,
                                             profiles_text(f->arena, allowed)));
}

bool nd_scc_matches_pattern(const struct nd_shape_texts *patterns, const char *name) {
        for (size_t i = 0; i < patterns->count; i++) {
                size_t length = strlen(patterns->items[i]);

                if (length > 0 && patterns->items[i][length - 1] == '*') {
                        if (strncmp(patterns->items[i], name, length - 1) == 0)
                                return true;
                } else if (nd_streq(patterns->items[i], name)) {
                        return true;
                }
        }
        return false;
}

/* ---- AppArmor ----
 *
 * Nothing is filled in: for a pod without a profile the kubelet uses the runtime's default. Every
 * field and annotation is compared, as in pod security: kubelets read the field, those before 1.30
 * the annotation. A privileged container has no profile. */

static const char *apparmor_text(struct nd_arena *arena, const struct nd_pod_profile *profile) {
        if (!profile)
                return "runtime/default";
        if (nd_scc_is(profile->type, "Unconfined"))
                return "unconfined";
        if (nd_scc_is(profile->type, "RuntimeDefault"))
                return "runtime/default";
        if (nd_scc_is(profile->type, "Localhost"))
                return nd_arena_format(arena, "localhost/%s", nd_kube_or_empty(profile->localhost));
        /* a type of a later Kubernetes: in no list */
        return nd_arena_format(arena, "'%s'", nd_kube_or_empty(profile->type));
}

static const char *apparmor_refusal(struct nd_scc_fitting *f, const char *profile) {
        const struct nd_shape_texts *allowed = &f->scc->allowed_apparmor;

        if (!allowed->items || nd_scc_matches_pattern(allowed, profile))
                return nullptr;
        return nd_arena_format(f->arena, "%s is not an allowed AppArmor profile. Valid values are [%s]", profile,
                               profiles_text(f->arena, allowed));
}

static void validate_apparmor_text(struct nd_scc_fitting *f, const char *profile, const struct nd_scc_spot *spot) {
        const char *refusal = apparmor_refusal(f, profile);

        if (refusal)
                nd_scc_fitting_error(f, spot, "appArmorProfile", ND_FIELD_FORBIDDEN, nullptr, refusal);
}

void nd_scc_validate_apparmor(struct nd_scc_fitting *f, const struct nd_pod_profile *profile, const struct nd_scc_spot *spot) {
        validate_apparmor_text(f, apparmor_text(f->arena, profile), spot);
}

void nd_scc_validate_apparmor_annotations(struct nd_scc_fitting *f) {
        const struct nd_shape_pairs *annotations = &f->pod->metadata.annotations;

        for (size_t i = 0; i < annotations->count; i++) {
                const struct nd_shape_pair *one = &annotations->items[i];
                const char *refusal = nd_has_prefix(one->key, APPARMOR_CONTAINER) && one->value[0] != '\0'
                                              ? apparmor_refusal(f, one->value)
                                              : nullptr;

                if (refusal)
                        nd_field_add(f->errors, ND_FIELD_FORBIDDEN, nullptr, refusal, "metadata.annotations[%s]", one->key);
        }
}

void nd_scc_validate_container_apparmor(struct nd_scc_fitting *f, const struct nd_pod_container *c,
                                        const struct nd_scc_spot *spot) {
        const struct nd_pod_profile *profile = c->security->apparmor ? c->security->apparmor : f->pod->spec.security->apparmor;

        validate_apparmor_text(f, c->security->privileged == ND_ON ? "unconfined" : apparmor_text(f->arena, profile), spot);
}
