/* SPDX-License-Identifier: Apache-2.0 */
/* scc-strategies.c - tries one constraint on one pod
 *
 * Two steps: generate fills in fields that the pod leaves open, validate compares the result. A
 * constraint fits if there are no errors. The pod's own context is handled before its containers',
 * which inherit from it. Profiles are compared in scc-profiles.c, volumes in scc-volumes.c. */
#include <inttypes.h>
#include <string.h>

#include "policy/scc-fitting.h"

static const struct nd_scc_spot of_pod = {};

void nd_scc_fitting_error(struct nd_scc_fitting *f, const struct nd_scc_spot *spot, const char *field,
                          enum nd_field_problem problem, const char *value, const char *detail) {
        if (spot->list)
                nd_field_add(f->errors, problem, value, detail, "spec.%s[%zu].securityContext.%s", spot->list, spot->number,
                             field);
        else
                nd_field_add(f->errors, problem, value, detail, "spec.securityContext.%s", field);
}

/* ---- IDs ---- */

/* Returns the first ID of a range that exists in the pod's user namespace. */
static struct nd_shape_int first_usable(const struct nd_scc_fitting *f, struct nd_shape_int min) {
        return f->window > 0 && min.value >= f->window ? (struct nd_shape_int) {} : min;
}

static void validate_window(struct nd_scc_fitting *f, struct nd_shape_int id, const struct nd_scc_spot *spot,
                            const char *field) {
        if (f->window == 0 || !id.set || (id.value >= 0 && id.value < f->window))
                return;
        nd_scc_fitting_error(
                f, spot, field, ND_FIELD_INVALID, nd_field_int(f->arena, id.value),
                nd_arena_format(f->arena, "is outside of the IDs 0 to %u of the pod's user namespace", f->window - 1));
}

/* No ID could be generated, because the constraint's range and the pod's window do not overlap. */
static void refuse_range(struct nd_scc_fitting *f, struct nd_shape_int min, struct nd_shape_int max,
                         const struct nd_scc_spot *spot, const char *field) {
        nd_scc_fitting_error(f, spot, field, ND_FIELD_INVALID, "null",
                             nd_arena_format(f->arena,
                                             "the range [%" PRId64 ", %" PRId64
                                             "] has none of the IDs 0 to %u of the pod's user namespace",
                                             min.value, max.value, f->window - 1));
}

/* ---- groups ---- */

static bool group_is_allowed(const struct nd_scc_groups *groups, int64_t group) {
        nd_list_each(range, &groups->ranges) if (group >= range->min.value && group <= range->max.value) return true;
        return false;
}

static const char *groups_text(struct nd_arena *arena, const struct nd_shape_ints *groups) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        nd_text_add(&text, "[");
        for (size_t i = 0; i < groups->count; i++)
                nd_text_addf(&text, "%s%" PRId64, i > 0 ? "," : "", groups->items[i]);
        nd_text_add(&text, "]");
        return nd_arena_strdup(arena, nd_text_get(&text));
}

static void validate_groups(struct nd_scc_fitting *f, const struct nd_scc_groups *allowed, const struct nd_shape_ints *groups,
                            const char *field) {
        if (nd_scc_is(allowed->type, "MustRunAs") && groups->count == 0)
                nd_scc_fitting_error(f, &of_pod, field, ND_FIELD_INVALID, "[]",
                                     "unable to validate empty groups against required ranges");
        for (size_t i = 0; i < groups->count; i++) {
                if (nd_scc_is(allowed->type, "MustRunAs") && !group_is_allowed(allowed, groups->items[i]))
                        nd_scc_fitting_error(
                                f, &of_pod, field, ND_FIELD_INVALID, groups_text(f->arena, groups),
                                nd_arena_format(f->arena, "%" PRId64 " is not an allowed group", groups->items[i]));
                validate_window(f, ND_INT(groups->items[i]), &of_pod, field);
        }
}

/* If the strategy generates a group: the first ID of the first range that exists in the pod's user
 * namespace. */
static struct nd_shape_int generate_group(struct nd_scc_fitting *f, const struct nd_scc_groups *groups,
                                          const struct nd_scc_spot *spot, const char *field) {
        if (!nd_scc_is(groups->type, "MustRunAs") || groups->ranges.count == 0)
                return (struct nd_shape_int) {};
        nd_list_each(range, &groups->ranges) {
                struct nd_shape_int id = first_usable(f, range->min);

                if (id.set)
                        return id;
        }
        refuse_range(f, groups->ranges.items[0].min, groups->ranges.items[0].max, spot, field);
        return (struct nd_shape_int) {};
}

static void fit_pod_groups(struct nd_scc_fitting *f, struct nd_pod_context *context) {
        struct nd_shape_ints fs_groups = {.items = &context->fs_group.value};
        size_t before = f->errors->items.count;

        if (!context->supplemental_groups.items) {
                struct nd_shape_int group = generate_group(f, &f->scc->supplemental_groups, &of_pod, "supplementalGroups");

                if (group.set) {
                        context->supplemental_groups.items = nd_arena_new(f->arena, int64_t);
                        context->supplemental_groups.items[0] = group.value;
                        context->supplemental_groups.count = 1;
                }
        }
        if (!context->fs_group.set)
                context->fs_group = generate_group(f, &f->scc->fs_group, &of_pod, "fsGroup");
        if (f->errors->items.count > before)
                return; /* the failure to generate one was reported already */
        fs_groups.count = context->fs_group.set ? 1 : 0;
        validate_groups(f, &f->scc->fs_group, &fs_groups, "fsGroup");
        validate_groups(f, &f->scc->supplemental_groups, &context->supplemental_groups, "supplementalGroups");
}

static void fit_groups_policy(struct nd_scc_fitting *f, struct nd_pod_context *context) {
        if (!f->scc->groups_policy)
                return;
        if (!context->supplemental_groups_policy)
                context->supplemental_groups_policy = f->scc->groups_policy;
        if (!nd_scc_is(context->supplemental_groups_policy, f->scc->groups_policy))
                nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_text(f->arena, context->supplemental_groups_policy),
                             nd_arena_format(f->arena, "must be %s", f->scc->groups_policy),
                             "spec.securityContext.supplementalGroupsPolicy");
}

/* ---- sysctls ---- */

/* The safe sysctls of Kubernetes 1.37. OpenShift checks the API server's kernel for three of them;
 * every kernel with the features that we need (5.12) has them. */
const struct nd_shape_texts nd_scc_safe_sysctls = {
        .items =
                (const char *[]) {
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
                        "net.ipv4.tcp_slow_start_after_idle",
                        "net.ipv4.tcp_notsent_lowat",
                },
        .count = 14,
};

static void validate_sysctls(struct nd_scc_fitting *f, const struct nd_pod_context *context) {
        for (size_t i = 0; i < context->sysctls.count; i++) {
                const char *name = nd_kube_or_empty(context->sysctls.items[i].name);
                bool forbidden = nd_scc_matches_pattern(&f->scc->forbidden_sysctls, name);

                if (!forbidden && (nd_shape_texts_have(&nd_scc_safe_sysctls, name) ||
                                   nd_scc_matches_pattern(&f->scc->allowed_unsafe_sysctls, name)))
                        continue;
                nd_field_add(f->errors, ND_FIELD_FORBIDDEN, nullptr,
                             nd_arena_format(f->arena, "%ssysctl %s is not allowed", forbidden ? "" : "unsafe ",
                                             nd_field_text(f->arena, name)),
                             "spec.securityContext.sysctls[%zu]", i);
        }
}

/* ---- the pod ---- */

static void validate_host_namespaces(struct nd_scc_fitting *f) {
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

/* A HostProcess container of Windows is a process of the host, like a privileged one on Linux. A
 * pod may have one without naming its operating system. */
static void validate_host_process(struct nd_scc_fitting *f, const struct nd_pod_windows *windows,
                                  const struct nd_scc_spot *spot) {
        if (windows && windows->host_process == ND_ON && !f->scc->allow_privileged)
                nd_scc_fitting_error(f, spot, "windowsOptions.hostProcess", ND_FIELD_INVALID, "true",
                                     "Host process containers are not allowed");
}

static void fit_pod(struct nd_scc_fitting *f) {
        struct nd_pod_context *context = nd_pod_own_context(f->pod, f->arena);

        fit_pod_groups(f, context);
        fit_groups_policy(f, context);
        if (!context->selinux && nd_scc_is(f->scc->selinux.type, "MustRunAs"))
                context->selinux = f->scc->selinux.options;
        nd_scc_generate_seccomp(f, context);
        nd_scc_validate_seccomp(f, context->seccomp, &of_pod);
        nd_scc_validate_selinux(f, context->selinux, &of_pod);
        validate_host_namespaces(f);
        validate_sysctls(f, context);
        if (context->apparmor)
                nd_scc_validate_apparmor(f, context->apparmor, &of_pod);
        nd_scc_validate_apparmor_annotations(f);
        validate_host_process(f, context->windows, &of_pod);
        nd_scc_validate_volumes(f);
}

/* ---- a container ---- */

static struct nd_shape_int user_of(const struct nd_scc_fitting *f, const struct nd_pod_container_context *context) {
        return context->run_as_user.set ? context->run_as_user : f->pod->spec.security->run_as_user;
}

static enum nd_shape_switch non_root_of(const struct nd_scc_fitting *f, const struct nd_pod_container_context *context) {
        return context->run_as_non_root != ND_UNSET ? context->run_as_non_root : f->pod->spec.security->run_as_non_root;
}

static void generate_user(struct nd_scc_fitting *f, struct nd_pod_container_context *context, const struct nd_scc_spot *spot) {
        const struct nd_scc_user *strategy = &f->scc->user;
        struct nd_shape_int user;

        if (!user_of(f, context).set && nd_scc_is(strategy->type, "MustRunAs")) {
                context->run_as_user = strategy->uid;
        } else if (!user_of(f, context).set && nd_scc_is(strategy->type, "MustRunAsRange")) {
                context->run_as_user = first_usable(f, strategy->min);
                if (!context->run_as_user.set)
                        refuse_range(f, strategy->min, strategy->max, spot, "runAsUser");
        }
        user = user_of(f, context);
        if (non_root_of(f, context) == ND_UNSET && (user.set ? user.value > 0 : nd_scc_is(strategy->type, "MustRunAsNonRoot")))
                context->run_as_non_root = ND_ON;
}

static void validate_non_root(struct nd_scc_fitting *f, const struct nd_pod_container_context *context,
                              const struct nd_scc_spot *spot) {
        enum nd_shape_switch non_root = non_root_of(f, context);
        struct nd_shape_int user = user_of(f, context);

        if (non_root == ND_UNSET && !user.set)
                nd_scc_fitting_error(f, spot, "runAsNonRoot", ND_FIELD_REQUIRED, nullptr, "must be true");
        else if (non_root == ND_OFF)
                nd_scc_fitting_error(f, spot, "runAsNonRoot", ND_FIELD_INVALID, "false", "must be true");
        else if (user.set && user.value == 0)
                nd_scc_fitting_error(f, spot, "runAsUser", ND_FIELD_INVALID, "0", "running with the root UID is forbidden");
}

static void validate_user(struct nd_scc_fitting *f, const struct nd_pod_container_context *context,
                          const struct nd_scc_spot *spot) {
        const struct nd_scc_user *strategy = &f->scc->user;
        struct nd_shape_int user = user_of(f, context);
        const char *detail = nullptr;

        validate_window(f, user, spot, "runAsUser");
        if (nd_scc_is(strategy->type, "RunAsAny"))
                return;
        if (nd_scc_is(strategy->type, "MustRunAsNonRoot")) {
                validate_non_root(f, context, spot);
                return;
        }
        if (!user.set) {
                /* there refuse_range() has reported more */
                if (!(f->window > 0 && nd_scc_is(strategy->type, "MustRunAsRange")))
                        nd_scc_fitting_error(f, spot, "runAsUser", ND_FIELD_REQUIRED, nullptr, "");
                return;
        }
        if (nd_scc_is(strategy->type, "MustRunAs") && user.value != strategy->uid.value)
                detail = nd_arena_format(f->arena, "must be: %" PRId64, strategy->uid.value);
        if (nd_scc_is(strategy->type, "MustRunAsRange") &&
            (user.value < strategy->min.value || user.value > strategy->max.value))
                detail = nd_arena_format(f->arena, "must be in the ranges: [%" PRId64 ", %" PRId64 "]", strategy->min.value,
                                         strategy->max.value);
        if (detail)
                nd_scc_fitting_error(f, spot, "runAsUser", ND_FIELD_INVALID, nd_field_int(f->arena, user.value), detail);
}

static void fit_group(struct nd_scc_fitting *f, struct nd_pod_container_context *context, const struct nd_scc_spot *spot) {
        const struct nd_scc_groups *strategy = &f->scc->run_as_group;
        struct nd_shape_int group = context->run_as_group.set ? context->run_as_group : f->pod->spec.security->run_as_group;

        if (!group.set && strategy->type)
                group = context->run_as_group = generate_group(f, strategy, spot, "runAsGroup");
        validate_window(f, group, spot, "runAsGroup");
        if (group.set && nd_scc_is(strategy->type, "MustRunAs") && !group_is_allowed(strategy, group.value))
                nd_scc_fitting_error(f, spot, "runAsGroup", ND_FIELD_INVALID, nd_field_int(f->arena, group.value),
                                     nd_arena_format(f->arena, "%" PRId64 " is not an allowed group", group.value));
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* The union of two lists without the items of a third, sorted. */
static struct nd_shape_texts joined(struct nd_arena *arena, const struct nd_shape_texts *a,
                                    const struct nd_shape_texts *without, const struct nd_shape_texts *b) {
        struct nd_shape_texts list = {.items = nd_arena_alloc(arena, a->count + b->count, sizeof *list.items)};
        size_t kept = 0;

        for (size_t i = 0; i < a->count; i++)
                if (!nd_shape_texts_have(without, a->items[i]))
                        list.items[list.count++] = a->items[i];
        for (size_t i = 0; i < b->count; i++)
                list.items[list.count++] = b->items[i];
        if (list.count == 0)
                return (struct nd_shape_texts) {};
        qsort(list.items, list.count, sizeof *list.items, compare_texts);
        for (size_t i = 1; i < list.count; i++)
                if (!nd_streq(list.items[kept], list.items[i]))
                        list.items[++kept] = list.items[i];
        list.count = kept + 1;
        return list;
}

static void generate_capabilities(struct nd_scc_fitting *f, struct nd_pod_container_context *context) {
        static const struct nd_shape_texts none = {};
        const struct nd_pod_capabilities *own = context->capabilities;
        const struct nd_shape_texts *add = own ? &own->add : &none, *drop = own ? &own->drop : &none;
        struct nd_pod_capabilities *result;
        bool changes = false;

        for (size_t i = 0; i < f->scc->default_add.count; i++)
                changes |= !nd_shape_texts_have(drop, f->scc->default_add.items[i]) &&
                           !nd_shape_texts_have(add, f->scc->default_add.items[i]);
        for (size_t i = 0; i < f->scc->required_drop.count; i++)
                changes |= !nd_shape_texts_have(drop, f->scc->required_drop.items[i]);
        if (!changes)
                return;
        result = nd_arena_new(f->arena, struct nd_pod_capabilities);
        result->add = joined(f->arena, &f->scc->default_add, drop, add);
        result->drop = joined(f->arena, &f->scc->required_drop, &none, drop);
        context->capabilities = result;
}

static const char *list_json(struct nd_arena *arena, const struct nd_shape_texts *texts) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        for (size_t i = 0; i < texts->count; i++)
                nd_text_addf(&text, "%s%s", i > 0 ? "," : "", nd_field_json(arena, texts->items[i]));
        return texts->items ? nd_arena_format(arena, "[%s]", nd_text_get(&text)) : "null";
}

static void validate_capabilities(struct nd_scc_fitting *f, const struct nd_pod_container_context *context,
                                  const struct nd_scc_spot *spot) {
        const struct nd_scc *scc = f->scc;
        const struct nd_pod_capabilities *own = context->capabilities;

        if (!own) {
                if (scc->default_add.count > 0 || scc->required_drop.count > 0)
                        nd_scc_fitting_error(f, spot, "capabilities", ND_FIELD_INVALID, "null",
                                             "required capabilities are not set on the securityContext");
                return;
        }
        if (nd_shape_texts_have(&scc->allowed_capabilities, "*"))
                return;
        for (size_t i = 0; i < own->add.count; i++)
                if (!nd_shape_texts_have(&scc->default_add, own->add.items[i]) &&
                    !nd_shape_texts_have(&scc->allowed_capabilities, own->add.items[i]))
                        nd_scc_fitting_error(f, spot, "capabilities.add", ND_FIELD_INVALID,
                                             nd_field_text(f->arena, own->add.items[i]), "capability may not be added");
        for (size_t i = 0; i < scc->required_drop.count; i++)
                if (!nd_shape_texts_have(&own->drop, scc->required_drop.items[i]))
                        nd_scc_fitting_error(f, spot, "capabilities.drop", ND_FIELD_INVALID, list_json(f->arena, &own->drop),
                                             nd_arena_format(f->arena, "%s is required to be dropped but was not found",
                                                             scc->required_drop.items[i]));
}

/* CAP_SYS_ADMIN in both spellings. It contradicts allowPrivilegeEscalation: false (no_new_privs),
 * which is therefore not filled in. */
static bool adds_sys_admin(const struct nd_pod_container_context *context) {
        return context->capabilities && (nd_shape_texts_have(&context->capabilities->add, "CAP_SYS_ADMIN") ||
                                         nd_shape_texts_have(&context->capabilities->add, "SYS_ADMIN"));
}

static void fit_privileges(struct nd_scc_fitting *f, struct nd_pod_container_context *context,
                           const struct nd_scc_spot *spot) {
        const struct nd_scc *scc = f->scc;
        enum nd_shape_switch *escalation = &context->allow_privilege_escalation;

        if (*escalation == ND_UNSET && context->privileged != ND_ON && !adds_sys_admin(context))
                *escalation = scc->default_allow_privilege_escalation;
        if (*escalation == ND_UNSET && scc->allow_privilege_escalation == ND_OFF)
                *escalation = ND_OFF;
        if (context->privileged == ND_ON && !scc->allow_privileged)
                nd_scc_fitting_error(f, spot, "privileged", ND_FIELD_INVALID, "true", "Privileged containers are not allowed");
        if (scc->allow_privilege_escalation == ND_OFF && *escalation != ND_OFF)
                nd_scc_fitting_error(f, spot, "allowPrivilegeEscalation", ND_FIELD_INVALID, "true",
                                     "Allowing privilege escalation for containers is not allowed");
}

static void fit_root_filesystem(struct nd_scc_fitting *f, struct nd_pod_container_context *context,
                                const struct nd_scc_spot *spot) {
        if (!f->scc->read_only_root)
                return;
        if (context->read_only_root == ND_UNSET)
                context->read_only_root = ND_ON;
        if (context->read_only_root == ND_OFF)
                nd_scc_fitting_error(f, spot, "readOnlyRootFilesystem", ND_FIELD_INVALID, "false",
                                     "ReadOnlyRootFilesystem must be set to true");
}

static void validate_proc_mount(struct nd_scc_fitting *f, const struct nd_pod_container_context *context,
                                const struct nd_scc_spot *spot) {
        const char *type = context->proc_mount ? context->proc_mount : "Default";

        if (f->scc->allowed_proc_mounts.items && !nd_shape_texts_have(&f->scc->allowed_proc_mounts, type))
                nd_scc_fitting_error(f, spot, "procMount", ND_FIELD_INVALID, nd_field_text(f->arena, type),
                                     "procMount type is not allowed to be used");
}

static void validate_host_ports(struct nd_scc_fitting *f, const struct nd_pod_container *c, const struct nd_scc_spot *spot) {
        for (size_t i = 0; !f->scc->allow_host_ports && i < c->ports.count; i++)
                if (c->ports.items[i].host_port.value > 0)
                        nd_field_add(f->errors, ND_FIELD_INVALID, nd_field_int(f->arena, c->ports.items[i].host_port.value),
                                     "Host ports are not allowed to be used", "spec.%s[%zu].ports[%zu].hostPort", spot->list,
                                     spot->number, i);
}

static const struct nd_pod_profile *seccomp_of_container(const struct nd_scc_fitting *f, const struct nd_pod_container *c) {
        return c->security && c->security->seccomp ? c->security->seccomp : f->pod->spec.security->seccomp;
}

static void fit_container(struct nd_scc_fitting *f, struct nd_pod_container *c, const struct nd_scc_spot *spot) {
        struct nd_pod_container_context *context = nd_pod_container_own_context(c, f->arena);

        generate_user(f, context, spot);
        generate_capabilities(f, context);

        validate_user(f, context, spot);
        fit_group(f, context, spot);
        nd_scc_validate_selinux(f, context->selinux ? context->selinux : f->pod->spec.security->selinux, spot);
        nd_scc_validate_seccomp(f, seccomp_of_container(f, c), spot);
        nd_scc_validate_container_apparmor(f, c, spot);
        fit_privileges(f, context, spot);
        validate_capabilities(f, context, spot);
        fit_root_filesystem(f, context, spot);
        validate_proc_mount(f, context, spot);
        validate_host_process(f, context->windows, spot);
        validate_host_ports(f, c, spot);
}

/* ---- Windows ----
 *
 * The API server refuses Linux fields in such a pod, so nothing is filled in and no user or profile
 * is compared. Its access to the host is. */

static void fit_windows_container(struct nd_scc_fitting *f, const struct nd_pod_container *c, const struct nd_scc_spot *spot) {
        if (c->security) {
                if (c->security->privileged == ND_ON && !f->scc->allow_privileged)
                        nd_scc_fitting_error(f, spot, "privileged", ND_FIELD_INVALID, "true",
                                             "Privileged containers are not allowed");
                validate_host_process(f, c->security->windows, spot);
        }
        validate_host_ports(f, c, spot);
}

static void fit_windows_pod(struct nd_scc_fitting *f) {
        if (f->pod->spec.security)
                validate_host_process(f, f->pod->spec.security->windows, &of_pod);
        validate_host_namespaces(f);
        nd_scc_validate_volumes(f);
}

static bool asks_for_too_much(const struct nd_scc *scc, const struct nd_pod_container *c) {
        const struct nd_scc_user *user = &scc->user;
        struct nd_shape_int uid = c->security ? c->security->run_as_user : (struct nd_shape_int) {};

        if (c->security && c->security->privileged == ND_ON && !scc->allow_privileged)
                return true;
        if (uid.set && nd_scc_is(user->type, "MustRunAs") && user->uid.set && uid.value != user->uid.value)
                return true;
        return uid.set && nd_scc_is(user->type, "MustRunAsRange") && user->min.set && user->max.set &&
               (uid.value < user->min.value || uid.value > user->max.value);
}

bool nd_scc_is_out(const struct nd_scc *scc, const struct nd_pod *pod) {
        const struct nd_pod_container *c;

        if ((pod->spec.host_network && !scc->allow_host_network) || (pod->spec.host_pid && !scc->allow_host_pid) ||
            (pod->spec.host_ipc && !scc->allow_host_ipc))
                return true;
        if (nd_scc_requires_user_namespace(scc) && !nd_pod_has_user_namespace(pod))
                return true;
        nd_list_each(volume, &pod->spec.volumes) for (enum nd_pod_volume_source source = 0; source < ND_VOLUME_SOURCES;
                                                      source++) if (volume->sources & nd_pod_volume_bit(source) &&
                                                                    !nd_scc_allows_source(scc, volume, source)) return true;
        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++)
                if (asks_for_too_much(scc, c))
                        return true;
        return false;
}

void nd_scc_fit(const struct nd_scc *bound, struct nd_pod *pod, uint32_t window, struct nd_field_errors *errors) {
        struct nd_scc_fitting f = {.scc = bound, .pod = pod, .arena = errors->arena, .errors = errors};
        bool windows = nd_pod_is_windows(pod);
        struct nd_pod_container *c;

        f.window = nd_pod_has_user_namespace(pod) ? window : 0;
        if (windows)
                fit_windows_pod(&f);
        else
                fit_pod(&f);
        for (size_t i = 0; (c = nd_pod_container(&pod->spec, i)); i++) {
                struct nd_scc_spot spot;

                if (errors->quiet && errors->items.count > 0)
                        return;
                spot.list = nd_pod_container_list(&pod->spec, i, &spot.number);
                if (windows)
                        fit_windows_container(&f, c, &spot);
                else
                        fit_container(&f, c, &spot);
        }
}
