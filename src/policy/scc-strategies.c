/* SPDX-License-Identifier: Apache-2.0 */
/* scc-strategies.c - one constraint against one pod
 *
 * Two halves, in this order: generate fills what the pod leaves open, validate compares what stands there then. A constraint
 * fits when nothing is said against it. The pod's own context is treated before its containers', which inherit from it. */
#include <inttypes.h>
#include <string.h>

#include "policy/scc.h"

#define APPARMOR_CONTAINER "container.apparmor.security.beta.kubernetes.io/"

/* What stays the same while one constraint is tried. */
struct fitting {
        const struct nd_scc *scc;
        struct nd_pod *pod;
        struct nd_arena *arena;
        struct nd_field_errors *errors;
        uint32_t window; /* 0: the pod has the host's IDs */
};

/* A context's place, spelled out only for an error: the pod's own where there is no list. */
struct spot {
        const char *list;
        size_t number;
};

static const struct spot of_pod = {};

static void say(struct fitting *f, const struct spot *spot, const char *field, enum nd_field_problem problem,
                const char *value, const char *detail) {
        if (spot->list)
                nd_field_add(f->errors, problem, value, detail, "spec.%s[%zu].securityContext.%s", spot->list, spot->number,
                             field);
        else
                nd_field_add(f->errors, problem, value, detail, "spec.securityContext.%s", field);
}

static bool is(const char *type, const char *name) {
        return nd_streq(nd_or_empty(type), name);
}

static bool same(const char *a, const char *b) {
        return nd_streq(nd_or_empty(a), nd_or_empty(b));
}

/* --- IDs --- */

/* The first ID of a range that the pod can have. */
static struct nd_int first_usable(const struct fitting *f, struct nd_int min) {
        return f->window > 0 && min.value >= f->window ? (struct nd_int) {} : min;
}

static void validate_window(struct fitting *f, struct nd_int id, const struct spot *spot, const char *field) {
        if (f->window == 0 || !id.set || (id.value >= 0 && id.value < f->window))
                return;
        say(f, spot, field, ND_FIELD_INVALID, nd_field_int(f->arena, id.value),
            nd_arena_format(f->arena, "is outside of the IDs 0 to %u of the pod's user namespace", f->window - 1));
}

/* Nothing could be generated, because the constraint's range does not reach into the pod's window. */
static void refuse_range(struct fitting *f, struct nd_int min, struct nd_int max, const struct spot *spot, const char *field) {
        say(f, spot, field, ND_FIELD_INVALID, "null",
            nd_arena_format(f->arena,
                            "the range [%" PRId64 ", %" PRId64 "] has none of the IDs 0 to %u of the pod's user namespace",
                            min.value, max.value, f->window - 1));
}

/* --- groups --- */

static bool group_is_allowed(const struct nd_scc_groups *groups, int64_t group) {
        nd_list_each(range, &groups->ranges) if (group >= range->min.value && group <= range->max.value) return true;
        return false;
}

static const char *groups_text(struct nd_arena *arena, const struct nd_ints *groups) {
        nd_autotext text = ND_TEXT(4096);

        nd_text_add(&text, "[");
        for (size_t i = 0; i < groups->count; i++)
                nd_text_addf(&text, "%s%" PRId64, i > 0 ? "," : "", groups->items[i]);
        nd_text_add(&text, "]");
        return nd_arena_strdup(arena, nd_text_get(&text));
}

static void validate_groups(struct fitting *f, const struct nd_scc_groups *allowed, const struct nd_ints *groups,
                            const char *field) {
        if (is(allowed->type, "MustRunAs") && groups->count == 0)
                say(f, &of_pod, field, ND_FIELD_INVALID, "[]", "unable to validate empty groups against required ranges");
        for (size_t i = 0; i < groups->count; i++) {
                if (is(allowed->type, "MustRunAs") && !group_is_allowed(allowed, groups->items[i]))
                        say(f, &of_pod, field, ND_FIELD_INVALID, groups_text(f->arena, groups),
                            nd_arena_format(f->arena, "%" PRId64 " is not an allowed group", groups->items[i]));
                validate_window(f, ND_INT(groups->items[i]), &of_pod, field);
        }
}

/* Where the strategy generates: the first ID of the first range that the pod can have. */
static struct nd_int generate_group(struct fitting *f, const struct nd_scc_groups *groups, const struct spot *spot,
                                    const char *field) {
        if (!is(groups->type, "MustRunAs") || groups->ranges.count == 0)
                return (struct nd_int) {};
        nd_list_each(range, &groups->ranges) {
                struct nd_int id = first_usable(f, range->min);

                if (id.set)
                        return id;
        }
        refuse_range(f, groups->ranges.items[0].min, groups->ranges.items[0].max, spot, field);
        return (struct nd_int) {};
}

static void fit_pod_groups(struct fitting *f, struct nd_pod_context *context) {
        struct nd_ints fs_groups = {.items = &context->fs_group.value};
        size_t before = f->errors->items.count;

        if (!context->supplemental_groups.items) {
                struct nd_int group = generate_group(f, &f->scc->supplemental_groups, &of_pod, "supplementalGroups");

                if (group.set) {
                        context->supplemental_groups.items = nd_arena_new(f->arena, int64_t);
                        context->supplemental_groups.items[0] = group.value;
                        context->supplemental_groups.count = 1;
                }
        }
        if (!context->fs_group.set)
                context->fs_group = generate_group(f, &f->scc->fs_group, &of_pod, "fsGroup");
        if (f->errors->items.count > before)
                return; /* what could not be generated need not be missed as well */
        fs_groups.count = context->fs_group.set ? 1 : 0;
        validate_groups(f, &f->scc->fs_group, &fs_groups, "fsGroup");
        validate_groups(f, &f->scc->supplemental_groups, &context->supplemental_groups, "supplementalGroups");
}

static void fit_groups_policy(struct fitting *f, struct nd_pod_context *context) {
        if (!f->scc->groups_policy)
                return;
        if (!context->supplemental_groups_policy)
                context->supplemental_groups_policy = f->scc->groups_policy;
        if (!same(context->supplemental_groups_policy, f->scc->groups_policy))
                nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, context->supplemental_groups_policy),
                             nd_arena_format(f->arena, "must be %s", f->scc->groups_policy),
                             "spec.securityContext.supplementalGroupsPolicy");
}

/* --- SELinux --- */

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static struct nd_texts categories(struct nd_arena *arena, const char *text) {
        struct nd_texts list = {};
        char *rest = nd_arena_strdup(arena, text);

        for (const char *c = text - 1; c; c = strchr(c + 1, ','))
                list.count++;
        list.items = nd_arena_alloc(arena, list.count, sizeof *list.items);
        for (size_t i = 0; i < list.count; i++)
                list.items[i] = strsep(&rest, ",");
        qsort(list.items, list.count, sizeof *list.items, compare_texts);
        return list;
}

/* The same sensitivity and the same set of categories, in any order. */
static bool levels_are_equal(struct nd_arena *arena, const char *expected, const char *actual) {
        const char *a = strchr(expected, ':'), *b = strchr(actual, ':');
        struct nd_texts x, y;

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

static void validate_selinux_part(struct fitting *f, const char *expected, const char *actual, const struct spot *spot,
                                  const char *field) {
        if (!same(expected, actual))
                say(f, spot, field, ND_FIELD_INVALID, nd_field_text(f->arena, nd_or_empty(actual)),
                    nd_arena_format(f->arena, "must be %s", nd_or_empty(expected)));
}

static void validate_selinux(struct fitting *f, const struct nd_selinux *actual, const struct spot *spot) {
        const struct nd_selinux *expected = f->scc->selinux.options;

        if (!is(f->scc->selinux.type, "MustRunAs") || !expected || actual == expected)
                return;
        if (!actual) {
                say(f, spot, "seLinuxOptions", ND_FIELD_REQUIRED, nullptr, "");
                return;
        }
        if (!levels_are_equal(f->arena, nd_or_empty(expected->level), nd_or_empty(actual->level)))
                validate_selinux_part(f, expected->level, actual->level, spot, "seLinuxOptions.level");
        validate_selinux_part(f, expected->role, actual->role, spot, "seLinuxOptions.role");
        validate_selinux_part(f, expected->type, actual->type, spot, "seLinuxOptions.type");
        validate_selinux_part(f, expected->user, actual->user, spot, "seLinuxOptions.user");
}

/* --- seccomp --- */

static bool is_runtime_default(const char *profile) {
        return nd_streq(profile, "runtime/default") || nd_streq(profile, "docker/default");
}

/* A field in the syntax in which constraints are written; "" where it says nothing. The annotations that this syntax comes from are dead:
 * no kubelet reads them any more, so they say nothing about how a container runs. */
static const char *seccomp_text(struct nd_arena *arena, const struct nd_profile *profile) {
        if (!profile)
                return "";
        if (is(profile->type, "Unconfined"))
                return "unconfined";
        if (is(profile->type, "RuntimeDefault"))
                return "runtime/default";
        if (is(profile->type, "Localhost") && profile->localhost)
                return nd_arena_format(arena, "localhost/%s", profile->localhost);
        return "";
}

static struct nd_profile *seccomp_field(struct nd_arena *arena, const char *text) {
        struct nd_profile *profile = nd_arena_new(arena, struct nd_profile);

        if (nd_streq(text, "unconfined"))
                profile->type = "Unconfined";
        else if (is_runtime_default(text))
                profile->type = "RuntimeDefault";
        else if (nd_has_prefix(text, "localhost/") && text[strlen("localhost/")] != '\0')
                *profile = (struct nd_profile) {.type = "Localhost", .localhost = text + strlen("localhost/")};
        else
                return nullptr;
        return profile;
}

/* The first profile of the list that is not the wildcard, nullptr where there is none. */
static const char *default_profile(const struct nd_scc *scc) {
        for (size_t i = 0; i < scc->seccomp_profiles.count; i++)
                if (!nd_streq(scc->seccomp_profiles.items[i], "*"))
                        return scc->seccomp_profiles.items[i];
        return nullptr;
}

static void generate_pod_seccomp(struct fitting *f, struct nd_pod_context *context) {
        const char *profile = default_profile(f->scc);

        if (!context->seccomp && profile)
                context->seccomp = seccomp_field(f->arena, profile);
}

static const char *profiles_text(struct nd_arena *arena, const struct nd_texts *profiles) {
        nd_autotext text = ND_TEXT(4096);

        for (size_t i = 0; i < profiles->count; i++)
                if (!nd_streq(profiles->items[i], "*"))
                        nd_text_addf(&text, "%s%s", text.length > 0 ? " " : "", profiles->items[i]);
        return nd_arena_strdup(arena, nd_text_get(&text));
}

static void validate_seccomp(struct fitting *f, const char *profile, const struct spot *spot) {
        const struct nd_texts *allowed = &f->scc->seccomp_profiles;
        bool any = nd_texts_have(allowed, "*");

        if (any)
                return;
        if (!default_profile(f->scc)) {
                if (profile[0] != '\0')
                        say(f, spot, "seccompProfile", ND_FIELD_FORBIDDEN, nullptr, "seccomp may not be set");
                return;
        }
        if (nd_texts_have(allowed, profile))
                return;
        if (is_runtime_default(profile) &&
            (nd_texts_have(allowed, "runtime/default") || nd_texts_have(allowed, "docker/default")))
                return;
        say(f, spot, "seccompProfile", ND_FIELD_FORBIDDEN, nullptr,
            nd_arena_format(f->arena, "%s is not an allowed seccomp profile. Valid values are [%s]", profile,
                            profiles_text(f->arena, allowed)));
}

static const struct nd_profile *seccomp_of_container(const struct fitting *f, const struct nd_container *c) {
        return c->security && c->security->seccomp ? c->security->seccomp : f->pod->spec.security->seccomp;
}

/* --- sysctls --- */

static bool matches_pattern(const struct nd_texts *patterns, const char *name) {
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

/* --- AppArmor ---
 *
 * Nothing is filled in: where a pod says nothing, the kubelet means the runtime's default. Every field and annotation that is there is
 * compared, as pod security does it: kubelets read the field, those before 1.30 the annotation. A privileged container has no profile. */

static const char *apparmor_text(struct nd_arena *arena, const struct nd_profile *profile) {
        if (!profile)
                return "runtime/default";
        if (is(profile->type, "Unconfined"))
                return "unconfined";
        if (is(profile->type, "RuntimeDefault"))
                return "runtime/default";
        if (is(profile->type, "Localhost"))
                return nd_arena_format(arena, "localhost/%s", nd_or_empty(profile->localhost));
        return nd_arena_format(arena, "'%s'", nd_or_empty(profile->type)); /* of a later Kubernetes: in no list */
}

static const char *apparmor_refusal(struct fitting *f, const char *profile) {
        const struct nd_texts *allowed = &f->scc->allowed_apparmor;

        if (!allowed->items || matches_pattern(allowed, profile))
                return nullptr;
        return nd_arena_format(f->arena, "%s is not an allowed AppArmor profile. Valid values are [%s]", profile,
                               profiles_text(f->arena, allowed));
}

static void validate_apparmor(struct fitting *f, const char *profile, const struct spot *spot) {
        const char *refusal = apparmor_refusal(f, profile);

        if (refusal)
                say(f, spot, "appArmorProfile", ND_FIELD_FORBIDDEN, nullptr, refusal);
}

static void validate_apparmor_annotations(struct fitting *f) {
        const struct nd_pairs *annotations = &f->pod->metadata.annotations;

        for (size_t i = 0; i < annotations->count; i++) {
                const struct nd_pair *one = &annotations->items[i];
                const char *refusal = nd_has_prefix(one->key, APPARMOR_CONTAINER) && one->value[0] != '\0'
                                              ? apparmor_refusal(f, one->value)
                                              : nullptr;

                if (refusal)
                        nd_field_add(f->errors, ND_FIELD_FORBIDDEN, nullptr, refusal, "metadata.annotations[%s]", one->key);
        }
}

static void validate_container_apparmor(struct fitting *f, const struct nd_container *c, const struct spot *spot) {
        const struct nd_profile *profile = c->security->apparmor ? c->security->apparmor : f->pod->spec.security->apparmor;

        validate_apparmor(f, c->security->privileged == ND_ON ? "unconfined" : apparmor_text(f->arena, profile), spot);
}

/* What Kubernetes 1.36 takes for safe. OpenShift asks the API server's kernel about three of them; every kernel that has what we
 * need (5.12) has them. */
static bool sysctl_is_safe(const char *name) {
        static const char *const safe[] = {
                "kernel.shm_rmid_forced",
                "net.ipv4.ip_local_port_range",
                "net.ipv4.tcp_syncookies",
                "net.ipv4.ping_group_range",
                "net.ipv4.ip_unprivileged_port_start",
                "net.ipv4.tcp_keepalive_time",
                "net.ipv4.tcp_fin_timeout",
                "net.ipv4.tcp_keepalive_intvl",
                "net.ipv4.tcp_keepalive_probes",
                "net.ipv4.ip_local_reserved_ports",
                "net.ipv4.tcp_rmem",
                "net.ipv4.tcp_wmem",
        };

        for (size_t i = 0; i < nd_count_of(safe); i++)
                if (nd_streq(safe[i], name))
                        return true;
        return false;
}

static void validate_sysctls(struct fitting *f, const struct nd_pod_context *context) {
        for (size_t i = 0; i < context->sysctls.count; i++) {
                const char *name = nd_or_empty(context->sysctls.items[i].name);
                bool forbidden = matches_pattern(&f->scc->forbidden_sysctls, name);

                if (!forbidden && (sysctl_is_safe(name) || matches_pattern(&f->scc->allowed_unsafe_sysctls, name)))
                        continue;
                nd_field_add(f->errors, ND_FIELD_FORBIDDEN, nullptr,
                             nd_arena_format(f->arena, "%ssysctl %s is not allowed", forbidden ? "" : "unsafe ",
                                             nd_field_text(f->arena, name)),
                             "spec.securityContext.sysctls[%zu]", i);
        }
}

/* --- volumes --- */

static bool config_map_is_standard(const struct nd_config_map_source *source) {
        static const struct {
                const char *name;
                const char *key;
        } standard[] = {{"kube-root-ca.crt", "ca.crt"}, {"openshift-service-ca.crt", "service-ca.crt"}};

        for (size_t i = 0; i < nd_count_of(standard); i++)
                if (is(source->name, standard[i].name))
                        return source->items.count == 1 && is(source->items.items[0].key, standard[i].key) &&
                               is(source->items.items[0].path, standard[i].key);
        return false;
}

static bool downward_is_standard(const struct nd_downward_source *source) {
        nd_list_each(item, &source->items) if (!is(item->path, "namespace") || !item->field_ref ||
                                               !is(item->field_ref->api_version, "v1") ||
                                               !is(item->field_ref->field_path, "metadata.namespace")) return false;
        return true;
}

/* The volume that every pod gets for its service account: whoever may mount secrets may mount this. */
static bool is_service_account_volume(const struct nd_projected *projected) {
        nd_list_each(source, &projected->sources) {
                if (!source->token && !source->config_map && !source->downward)
                        return false;
                if (source->token && (!is(source->token->path, "token") || !is(source->token->audience, "")))
                        return false;
                if (source->config_map && !config_map_is_standard(source->config_map))
                        return false;
                if (source->downward && !downward_is_standard(source->downward))
                        return false;
        }
        return true;
}

static bool source_is_allowed(const struct nd_scc *scc, const struct nd_volume *volume, enum nd_volume_source source) {
        if (nd_scc_allows_volume(scc, nd_scc_volume_type(source)))
                return true;
        return source == ND_VOLUME_PROJECTED && nd_scc_allows_volume(scc, "secret") && volume->projected &&
               is_service_account_volume(volume->projected);
}

static void validate_volume(struct fitting *f, const struct nd_volume *volume, size_t number) {
        if (volume->sources == 0 && !nd_texts_have(&f->scc->volumes, "*"))
                nd_field_add(f->errors, ND_FIELD_INVALID, "\"\"",
                             nd_arena_format(f->arena, "unknown volume type for volume: %s", nd_or_empty(volume->name)),
                             "spec.volumes[%zu]", number);
        for (enum nd_volume_source source = 0; source < ND_VOLUME_SOURCES; source++) {
                const char *type = nd_scc_volume_type(source);

                if (!(volume->sources & nd_volume_bit(source)) || source_is_allowed(f->scc, volume, source))
                        continue;
                nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, type),
                             nd_arena_format(f->arena, "%s volumes are not allowed to be used", type), "spec.volumes[%zu]",
                             number);
        }
}

static void validate_flex_volume(struct fitting *f, const struct nd_volume *volume, size_t number) {
        if (!volume->flex || f->scc->flex_volumes.count == 0 || !nd_scc_allows_volume(f->scc, "flexVolume"))
                return;
        nd_list_each(allowed, &f->scc->flex_volumes) if (same(allowed->driver, volume->flex->driver)) return;
        nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, nd_or_empty(volume->flex->driver)),
                     "Flexvolume driver is not allowed to be used", "spec.volumes[%zu].driver", number);
}

/* --- the pod --- */

static void validate_host_namespaces(struct fitting *f) {
        const struct nd_pod_spec *spec = &f->pod->spec;

        if (spec->host_network && !f->scc->allow_host_network)
                nd_field_add(f->errors, ND_FIELD_INVALID, "true", "Host network is not allowed to be used",
                             "spec.hostNetwork");
        if (spec->host_pid && !f->scc->allow_host_pid)
                nd_field_add(f->errors, ND_FIELD_INVALID, "true", "Host PID is not allowed to be used", "spec.hostPID");
        if (spec->host_ipc && !f->scc->allow_host_ipc)
                nd_field_add(f->errors, ND_FIELD_INVALID, "true", "Host IPC is not allowed to be used", "spec.hostIPC");
        if (nd_scc_requires_user_namespace(f->scc) && !nd_pod_has_user_namespace(f->pod))
                nd_field_add(f->errors, ND_FIELD_INVALID, spec->host_users == ND_ON ? "true" : "null",
                             "Host Users must be set to false", "spec.hostUsers");
}

static void validate_volumes(struct fitting *f) {
        for (size_t i = 0; i < f->pod->spec.volumes.count; i++) {
                validate_volume(f, &f->pod->spec.volumes.items[i], i);
                validate_flex_volume(f, &f->pod->spec.volumes.items[i], i);
        }
}

/* A HostProcess container of Windows is a process of the host: what privileged is on Linux. A pod need not name its system to be one. */
static void validate_host_process(struct fitting *f, const struct nd_windows *windows, const struct spot *spot) {
        if (windows && windows->host_process == ND_ON && !f->scc->allow_privileged)
                say(f, spot, "windowsOptions.hostProcess", ND_FIELD_INVALID, "true",
                    "Host process containers are not allowed");
}

static void fit_pod(struct fitting *f) {
        struct nd_pod_context *context = nd_pod_own_context(f->pod, f->arena);

        fit_pod_groups(f, context);
        fit_groups_policy(f, context);
        if (!context->selinux && is(f->scc->selinux.type, "MustRunAs"))
                context->selinux = f->scc->selinux.options;
        generate_pod_seccomp(f, context);
        validate_seccomp(f, seccomp_text(f->arena, context->seccomp), &of_pod);
        validate_selinux(f, context->selinux, &of_pod);
        validate_host_namespaces(f);
        validate_sysctls(f, context);
        if (context->apparmor)
                validate_apparmor(f, apparmor_text(f->arena, context->apparmor), &of_pod);
        validate_apparmor_annotations(f);
        validate_host_process(f, context->windows, &of_pod);
        validate_volumes(f);
}

/* --- a container --- */

static struct nd_int user_of(const struct fitting *f, const struct nd_security_context *context) {
        return context->run_as_user.set ? context->run_as_user : f->pod->spec.security->run_as_user;
}

static enum nd_switch non_root_of(const struct fitting *f, const struct nd_security_context *context) {
        return context->run_as_non_root != ND_UNSET ? context->run_as_non_root : f->pod->spec.security->run_as_non_root;
}

static void generate_user(struct fitting *f, struct nd_security_context *context, const struct spot *spot) {
        const struct nd_scc_user *strategy = &f->scc->user;
        struct nd_int user;

        if (!user_of(f, context).set && is(strategy->type, "MustRunAs")) {
                context->run_as_user = strategy->uid;
        } else if (!user_of(f, context).set && is(strategy->type, "MustRunAsRange")) {
                context->run_as_user = first_usable(f, strategy->min);
                if (!context->run_as_user.set)
                        refuse_range(f, strategy->min, strategy->max, spot, "runAsUser");
        }
        user = user_of(f, context);
        if (non_root_of(f, context) == ND_UNSET && (user.set ? user.value > 0 : is(strategy->type, "MustRunAsNonRoot")))
                context->run_as_non_root = ND_ON;
}

static void validate_non_root(struct fitting *f, const struct nd_security_context *context, const struct spot *spot) {
        enum nd_switch non_root = non_root_of(f, context);
        struct nd_int user = user_of(f, context);

        if (non_root == ND_UNSET && !user.set)
                say(f, spot, "runAsNonRoot", ND_FIELD_REQUIRED, nullptr, "must be true");
        else if (non_root == ND_OFF)
                say(f, spot, "runAsNonRoot", ND_FIELD_INVALID, "false", "must be true");
        else if (user.set && user.value == 0)
                say(f, spot, "runAsUser", ND_FIELD_INVALID, "0", "running with the root UID is forbidden");
}

static void validate_user(struct fitting *f, const struct nd_security_context *context, const struct spot *spot) {
        const struct nd_scc_user *strategy = &f->scc->user;
        struct nd_int user = user_of(f, context);
        const char *detail = nullptr;

        validate_window(f, user, spot, "runAsUser");
        if (is(strategy->type, "RunAsAny"))
                return;
        if (is(strategy->type, "MustRunAsNonRoot")) {
                validate_non_root(f, context, spot);
                return;
        }
        if (!user.set) {
                if (!(f->window > 0 && is(strategy->type, "MustRunAsRange"))) /* there refuse_range() has said more */
                        say(f, spot, "runAsUser", ND_FIELD_REQUIRED, nullptr, "");
                return;
        }
        if (is(strategy->type, "MustRunAs") && user.value != strategy->uid.value)
                detail = nd_arena_format(f->arena, "must be: %" PRId64, strategy->uid.value);
        if (is(strategy->type, "MustRunAsRange") && (user.value < strategy->min.value || user.value > strategy->max.value))
                detail = nd_arena_format(f->arena, "must be in the ranges: [%" PRId64 ", %" PRId64 "]", strategy->min.value,
                                         strategy->max.value);
        if (detail)
                say(f, spot, "runAsUser", ND_FIELD_INVALID, nd_field_int(f->arena, user.value), detail);
}

static void fit_group(struct fitting *f, struct nd_security_context *context, const struct spot *spot) {
        const struct nd_scc_groups *strategy = &f->scc->run_as_group;
        struct nd_int group = context->run_as_group.set ? context->run_as_group : f->pod->spec.security->run_as_group;

        if (!group.set && strategy->type)
                group = context->run_as_group = generate_group(f, strategy, spot, "runAsGroup");
        validate_window(f, group, spot, "runAsGroup");
        if (group.set && is(strategy->type, "MustRunAs") && !group_is_allowed(strategy, group.value))
                say(f, spot, "runAsGroup", ND_FIELD_INVALID, nd_field_int(f->arena, group.value),
                    nd_arena_format(f->arena, "%" PRId64 " is not an allowed group", group.value));
}

/* The union of two lists without a third, sorted. */
static struct nd_texts joined(struct nd_arena *arena, const struct nd_texts *a, const struct nd_texts *without,
                              const struct nd_texts *b) {
        struct nd_texts list = {.items = nd_arena_alloc(arena, a->count + b->count, sizeof *list.items)};
        size_t kept = 0;

        for (size_t i = 0; i < a->count; i++)
                if (!nd_texts_have(without, a->items[i]))
                        list.items[list.count++] = a->items[i];
        for (size_t i = 0; i < b->count; i++)
                list.items[list.count++] = b->items[i];
        if (list.count == 0)
                return (struct nd_texts) {};
        qsort(list.items, list.count, sizeof *list.items, compare_texts);
        for (size_t i = 1; i < list.count; i++)
                if (!nd_streq(list.items[kept], list.items[i]))
                        list.items[++kept] = list.items[i];
        list.count = kept + 1;
        return list;
}

static void generate_capabilities(struct fitting *f, struct nd_security_context *context) {
        static const struct nd_texts none = {};
        const struct nd_capabilities *own = context->capabilities;
        const struct nd_texts *add = own ? &own->add : &none, *drop = own ? &own->drop : &none;
        struct nd_capabilities *result;
        bool changes = false;

        for (size_t i = 0; i < f->scc->default_add.count; i++)
                changes |= !nd_texts_have(drop, f->scc->default_add.items[i]) &&
                           !nd_texts_have(add, f->scc->default_add.items[i]);
        for (size_t i = 0; i < f->scc->required_drop.count; i++)
                changes |= !nd_texts_have(drop, f->scc->required_drop.items[i]);
        if (!changes)
                return;
        result = nd_arena_new(f->arena, struct nd_capabilities);
        result->add = joined(f->arena, &f->scc->default_add, drop, add);
        result->drop = joined(f->arena, &f->scc->required_drop, &none, drop);
        context->capabilities = result;
}

static const char *list_json(struct nd_arena *arena, const struct nd_texts *texts) {
        nd_autotext text = ND_TEXT(4096);

        for (size_t i = 0; i < texts->count; i++)
                nd_text_addf(&text, "%s%s", i > 0 ? "," : "", nd_field_json(arena, texts->items[i]));
        return texts->items ? nd_arena_format(arena, "[%s]", nd_text_get(&text)) : "null";
}

static void validate_capabilities(struct fitting *f, const struct nd_security_context *context, const struct spot *spot) {
        const struct nd_scc *scc = f->scc;
        const struct nd_capabilities *own = context->capabilities;

        if (!own) {
                if (scc->default_add.count > 0 || scc->required_drop.count > 0)
                        say(f, spot, "capabilities", ND_FIELD_INVALID, "null",
                            "required capabilities are not set on the securityContext");
                return;
        }
        if (nd_texts_have(&scc->allowed_capabilities, "*"))
                return;
        for (size_t i = 0; i < own->add.count; i++)
                if (!nd_texts_have(&scc->default_add, own->add.items[i]) &&
                    !nd_texts_have(&scc->allowed_capabilities, own->add.items[i]))
                        say(f, spot, "capabilities.add", ND_FIELD_INVALID, nd_field_text(f->arena, own->add.items[i]),
                            "capability may not be added");
        for (size_t i = 0; i < scc->required_drop.count; i++)
                if (!nd_texts_have(&own->drop, scc->required_drop.items[i]))
                        say(f, spot, "capabilities.drop", ND_FIELD_INVALID, list_json(f->arena, &own->drop),
                            nd_arena_format(f->arena, "%s is required to be dropped but was not found",
                                            scc->required_drop.items[i]));
}

/* The kernel's own word for it, in either spelling: no_new_privs would be a promise that such a container breaks. */
static bool adds_sys_admin(const struct nd_security_context *context) {
        return context->capabilities && (nd_texts_have(&context->capabilities->add, "CAP_SYS_ADMIN") ||
                                         nd_texts_have(&context->capabilities->add, "SYS_ADMIN"));
}

static void fit_privileges(struct fitting *f, struct nd_security_context *context, const struct spot *spot) {
        const struct nd_scc *scc = f->scc;
        enum nd_switch *escalation = &context->allow_privilege_escalation;

        if (*escalation == ND_UNSET && context->privileged != ND_ON && !adds_sys_admin(context))
                *escalation = scc->default_allow_privilege_escalation;
        if (*escalation == ND_UNSET && scc->allow_privilege_escalation == ND_OFF)
                *escalation = ND_OFF;
        if (context->privileged == ND_ON && !scc->allow_privileged)
                say(f, spot, "privileged", ND_FIELD_INVALID, "true", "Privileged containers are not allowed");
        if (scc->allow_privilege_escalation == ND_OFF && *escalation != ND_OFF)
                say(f, spot, "allowPrivilegeEscalation", ND_FIELD_INVALID, "true",
                    "Allowing privilege escalation for containers is not allowed");
}

static void fit_root_filesystem(struct fitting *f, struct nd_security_context *context, const struct spot *spot) {
        if (!f->scc->read_only_root)
                return;
        if (context->read_only_root == ND_UNSET)
                context->read_only_root = ND_ON;
        if (context->read_only_root == ND_OFF)
                say(f, spot, "readOnlyRootFilesystem", ND_FIELD_INVALID, "false",
                    "ReadOnlyRootFilesystem must be set to true");
}

static void validate_proc_mount(struct fitting *f, const struct nd_security_context *context, const struct spot *spot) {
        const char *type = context->proc_mount ? context->proc_mount : "Default";

        if (f->scc->allowed_proc_mounts.items && !nd_texts_have(&f->scc->allowed_proc_mounts, type))
                say(f, spot, "procMount", ND_FIELD_INVALID, nd_field_text(f->arena, type),
                    "procMount type is not allowed to be used");
}

static void validate_host_ports(struct fitting *f, const struct nd_container *c, const struct spot *spot) {
        for (size_t i = 0; !f->scc->allow_host_ports && i < c->ports.count; i++)
                if (c->ports.items[i].host_port.value > 0)
                        nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_int(f->arena, c->ports.items[i].host_port.value),
                                     "Host ports are not allowed to be used", "spec.%s[%zu].ports[%zu].hostPort", spot->list,
                                     spot->number, i);
}

static void fit_container(struct fitting *f, struct nd_container *c, const struct spot *spot) {
        struct nd_security_context *context = nd_container_own_context(c, f->arena);

        generate_user(f, context, spot);
        generate_capabilities(f, context);

        validate_user(f, context, spot);
        fit_group(f, context, spot);
        validate_selinux(f, context->selinux ? context->selinux : f->pod->spec.security->selinux, spot);
        validate_seccomp(f, seccomp_text(f->arena, seccomp_of_container(f, c)), spot);
        validate_container_apparmor(f, c, spot);
        fit_privileges(f, context, spot);
        validate_capabilities(f, context, spot);
        fit_root_filesystem(f, context, spot);
        validate_proc_mount(f, context, spot);
        validate_host_process(f, context->windows, spot);
        validate_host_ports(f, c, spot);
}

/* --- Windows ---
 *
 * The API server refuses what is Linux' in such a pod, so nothing is filled in and no user or profile is compared. What it takes of its host
 * is. */

static void fit_windows_container(struct fitting *f, const struct nd_container *c, const struct spot *spot) {
        if (c->security) {
                if (c->security->privileged == ND_ON && !f->scc->allow_privileged)
                        say(f, spot, "privileged", ND_FIELD_INVALID, "true", "Privileged containers are not allowed");
                validate_host_process(f, c->security->windows, spot);
        }
        validate_host_ports(f, c, spot);
}

static void fit_windows_pod(struct fitting *f) {
        if (f->pod->spec.security)
                validate_host_process(f, f->pod->spec.security->windows, &of_pod);
        validate_host_namespaces(f);
        validate_volumes(f);
}

static bool asks_for_too_much(const struct nd_scc *scc, const struct nd_container *c) {
        const struct nd_scc_user *user = &scc->user;
        struct nd_int uid = c->security ? c->security->run_as_user : (struct nd_int) {};

        if (c->security && c->security->privileged == ND_ON && !scc->allow_privileged)
                return true;
        if (uid.set && is(user->type, "MustRunAs") && user->uid.set && uid.value != user->uid.value)
                return true;
        return uid.set && is(user->type, "MustRunAsRange") && user->min.set && user->max.set &&
               (uid.value < user->min.value || uid.value > user->max.value);
}

bool nd_scc_is_out(const struct nd_scc *scc, const struct nd_pod *pod) {
        const struct nd_container *c;

        if ((pod->spec.host_network && !scc->allow_host_network) || (pod->spec.host_pid && !scc->allow_host_pid) ||
            (pod->spec.host_ipc && !scc->allow_host_ipc))
                return true;
        if (nd_scc_requires_user_namespace(scc) && !nd_pod_has_user_namespace(pod))
                return true;
        nd_list_each(volume, &pod->spec.volumes) for (enum nd_volume_source source = 0; source < ND_VOLUME_SOURCES;
                                                      source++) if (volume->sources & nd_volume_bit(source) &&
                                                                    !source_is_allowed(scc, volume, source)) return true;
        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++)
                if (asks_for_too_much(scc, c))
                        return true;
        return false;
}

void nd_scc_fit(const struct nd_scc *bound, struct nd_pod *pod, uint32_t window, struct nd_field_errors *errors) {
        struct fitting f = {.scc = bound, .pod = pod, .arena = errors->arena, .errors = errors};
        bool windows = nd_pod_is_windows(pod);
        struct nd_container *c;

        f.window = nd_pod_has_user_namespace(pod) ? window : 0;
        if (windows)
                fit_windows_pod(&f);
        else
                fit_pod(&f);
        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++) {
                struct spot spot;

                if (errors->quiet && errors->items.count > 0)
                        return;
                spot.list = nd_pod_container_list(&pod->spec, i, &spot.number);
                if (windows)
                        fit_windows_container(&f, c, &spot);
                else
                        fit_container(&f, c, &spot);
        }
}
