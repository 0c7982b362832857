/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - the smallest change that lets a pod meet a level
 *
 * Each check has a fixer, which changes a copy of the pod and records the edit. The copy is
 * evaluated again until it has no violations, so every advice was tried. A fixer removes what is
 * forbidden and sets what is required, in the pod's context if one edit there covers all
 * containers. */
#include "policy/advice.h"

#include <string.h>

#include "base/map.h"
#include "policy/hostusers.h"

enum {
        ROUNDS = 3, /* a fix may uncover a violation of another check; more rounds never help */
};

/* One candidate: a copy of the pod with the edits so far. */
struct way {
        struct nd_pod *pod;
        struct nd_arena *arena;
        const struct nd_podsecurity_rule *rule;
        struct nd_advice advice;
};

void nd_advice_done(struct nd_advice *advice) {
        nd_vector_done(&advice->edits);
}

[[gnu::format(printf, 3, 4)]] static void note(struct way *way, const char *value, const char *path, ...) {
        struct nd_advice_edit edit = {.value = value};
        va_list arguments;

        va_start(arguments, path);
        edit.path = nd_arena_format_va(way->arena, path, arguments);
        va_end(arguments);
        nd_vector_push(&way->advice.edits, edit);
}

/* A container and its position, for loops over all of them. */
struct place {
        struct nd_pod_container *container;
        const char *list;
        size_t number;
};

static bool next_container(struct way *way, size_t index, struct place *ret) {
        ret->container = nd_pod_container(&way->pod->spec, index);
        if (ret->container)
                ret->list = nd_pod_container_list(&way->pod->spec, index, &ret->number);
        return ret->container;
}

#define AT "spec.%s[%zu].securityContext."

static void *fresh(struct way *way, const void *object, size_t size) {
        return memcpy(nd_arena_alloc(way->arena, 1, size), object, size);
}

static void fix_escalation(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++) {
                struct nd_pod_container_context *context = nd_pod_container_own_context(p.container, way->arena);

                if (context->allow_privilege_escalation == ND_OFF)
                        continue;
                context->allow_privilege_escalation = ND_OFF;
                note(way, "false", AT "allowPrivilegeEscalation", p.list, p.number);
        }
}

static bool is_default_capability(const char *name, bool restricted) {
        static const char *const names[] = {"NET_BIND_SERVICE", "AUDIT_WRITE", "CHOWN",     "DAC_OVERRIDE", "FOWNER",
                                            "FSETID",           "KILL",        "MKNOD",     "SETFCAP",      "SETGID",
                                            "SETPCAP",          "SETUID",      "SYS_CHROOT"};

        for (size_t i = 0; i < (restricted ? 1 : nd_count_of(names)); i++)
                if (nd_streq(names[i], name))
                        return true;
        return false;
}

static void remove_added(struct way *way, const struct place *p, bool restricted) {
        struct nd_pod_capabilities *capabilities = p->container->security ? p->container->security->capabilities : nullptr;
        nd_autotext struct nd_text left = ND_TEXT(4096);
        struct nd_shape_texts kept = {};

        if (!capabilities)
                return;
        kept.items = nd_arena_alloc(way->arena, capabilities->add.count, sizeof *kept.items);
        for (size_t i = 0; i < capabilities->add.count; i++) {
                if (!is_default_capability(capabilities->add.items[i], restricted))
                        continue;
                nd_text_addf(&left, "%s%s", kept.count > 0 ? ", " : "", nd_field_json(way->arena, capabilities->add.items[i]));
                kept.items[kept.count++] = capabilities->add.items[i];
        }
        if (kept.count == capabilities->add.count)
                return;
        capabilities = p->container->security->capabilities = fresh(way, capabilities, sizeof *capabilities);
        capabilities->add = kept;
        note(way, kept.count > 0 ? nd_arena_format(way->arena, "[%s]", nd_text_get(&left)) : nullptr, AT "capabilities.add",
             p->list, p->number);
}

static void fix_capabilities_baseline(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                remove_added(way, &p, false);
}

static void fix_capabilities_restricted(struct way *way) {
        static const char *all[] = {"ALL"};
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++) {
                struct nd_pod_container_context *context = nd_pod_container_own_context(p.container, way->arena);

                remove_added(way, &p, true);
                if (context->capabilities && nd_shape_texts_have(&context->capabilities->drop, "ALL"))
                        continue;
                context->capabilities = context->capabilities
                                                ? fresh(way, context->capabilities, sizeof *context->capabilities)
                                                : nd_arena_new(way->arena, struct nd_pod_capabilities);
                context->capabilities->drop = (struct nd_shape_texts) {.items = all, .count = 1};
                note(way, "[\"ALL\"]", AT "capabilities.drop", p.list, p.number);
        }
}

static void remove_flag(struct way *way, bool *flag, const char *path) {
        if (*flag)
                note(way, nullptr, "%s", path);
        *flag = false;
}

static void fix_host_namespaces(struct way *way) {
        remove_flag(way, &way->pod->spec.host_network, "spec.hostNetwork");
        remove_flag(way, &way->pod->spec.host_pid, "spec.hostPID");
        remove_flag(way, &way->pod->spec.host_ipc, "spec.hostIPC");
}

static bool is_plain_volume(uint64_t sources) {
        static const enum nd_pod_volume_source plain[] = {ND_VOLUME_CONFIG_MAP,
                                                          ND_VOLUME_CSI,
                                                          ND_VOLUME_DOWNWARD_API,
                                                          ND_VOLUME_EMPTY_DIR,
                                                          ND_VOLUME_EPHEMERAL,
                                                          ND_VOLUME_IMAGE,
                                                          ND_VOLUME_PERSISTENT_VOLUME_CLAIM,
                                                          ND_VOLUME_PROJECTED,
                                                          ND_VOLUME_SECRET};

        for (size_t i = 0; i < nd_count_of(plain); i++)
                if (sources & nd_pod_volume_bit(plain[i]))
                        return true;
        return false;
}

static bool is_not_plain(uint64_t sources) {
        return !is_plain_volume(sources);
}

static bool is_host_path(uint64_t sources) {
        return sources & nd_pod_volume_bit(ND_VOLUME_HOST_PATH);
}

/* The API server refuses a mount without its volume. */
static void remove_mounts(struct way *way, const struct nd_map *removed) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                for (size_t j = 0; j < p.container->volume_mounts.count; j++) {
                        if (!nd_map_has(removed, nd_kube_or_empty(p.container->volume_mounts.items[j].name)))
                                continue;
                        note(way, nullptr, "spec.%s[%zu].volumeMounts[%zu]", p.list, p.number, j);
                        way->advice.edits.items[way->advice.edits.count - 1].follows = true;
                }
}

/* No replacement can be suggested: only the author knows what the pod needs there. The copy keeps a
 * harmless volume, so that the indices of the others stay. */
static void remove_volumes(struct way *way, bool (*is_bad)(uint64_t sources)) {
        nd_cleanup(nd_map_done) struct nd_map removed = {};

        for (size_t i = 0; i < way->pod->spec.volumes.count; i++) {
                struct nd_pod_volume *volume = &way->pod->spec.volumes.items[i];

                if (!is_bad(volume->sources))
                        continue;
                volume->sources = nd_pod_volume_bit(ND_VOLUME_EMPTY_DIR);
                note(way, nullptr, "spec.volumes[%zu]", i);
                (void) nd_map_put(&removed, nd_kube_or_empty(volume->name), nullptr);
        }
        remove_mounts(way, &removed);
}

static void fix_host_paths(struct way *way) {
        remove_volumes(way, is_host_path);
}

static void fix_volumes(struct way *way) {
        remove_volumes(way, is_not_plain);
}

static void fix_host_ports(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++) {
                struct nd_pod_port *ports = nd_arena_alloc(way->arena, p.container->ports.count, sizeof *ports);

                for (size_t j = 0; j < p.container->ports.count; j++)
                        if (p.container->ports.items[j].host_port.value != 0)
                                note(way, nullptr, "spec.%s[%zu].ports[%zu].hostPort", p.list, p.number, j);
                p.container->ports.items = ports;
        }
}

static void remove_host(struct way *way, const struct place *p, struct nd_pod_endpoint **endpoint, const char *path) {
        if (!*endpoint || nd_kube_or_empty((*endpoint)->host)[0] == '\0')
                return;
        *endpoint = nd_arena_new(way->arena, struct nd_pod_endpoint);
        note(way, nullptr, "spec.%s[%zu].%s.host", p->list, p->number, path);
}

static void fix_handler(struct way *way, const struct place *p, struct nd_pod_handler **handler, const char *name) {
        if (!*handler)
                return;
        *handler = fresh(way, *handler, sizeof **handler);
        remove_host(way, p, &(*handler)->http, nd_arena_format(way->arena, "%s.httpGet", name));
        remove_host(way, p, &(*handler)->tcp, nd_arena_format(way->arena, "%s.tcpSocket", name));
}

static void fix_host_probes(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++) {
                fix_handler(way, &p, &p.container->liveness, "livenessProbe");
                fix_handler(way, &p, &p.container->readiness, "readinessProbe");
                fix_handler(way, &p, &p.container->startup, "startupProbe");
                if (!p.container->lifecycle)
                        continue;
                p.container->lifecycle = fresh(way, p.container->lifecycle, sizeof *p.container->lifecycle);
                fix_handler(way, &p, &p.container->lifecycle->post_start, "lifecycle.postStart");
                fix_handler(way, &p, &p.container->lifecycle->pre_stop, "lifecycle.preStop");
        }
}

static void fix_privileged(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->privileged == ND_ON) {
                        p.container->security->privileged = ND_UNSET;
                        note(way, nullptr, AT "privileged", p.list, p.number);
                }
}

static void fix_proc_mount(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->proc_mount &&
                    !nd_streq(p.container->security->proc_mount, "Default")) {
                        p.container->security->proc_mount = nullptr;
                        note(way, nullptr, AT "procMount", p.list, p.number);
                }
}

/* Whether a check forbids exactly this setting, if that depends on the version: evaluates a pod
 * with nothing but this setting. */
static bool is_forbidden(struct way *way, const char *check, struct nd_pod_context *context) {
        const struct nd_pod probe = {.spec = {.security = context}};
        struct nd_podsecurity_findings findings;

        nd_podsecurity_evaluate(way->rule, &probe, way->arena, &findings);
        for (size_t i = 0; i < findings.count; i++)
                if (nd_streq(findings.items[i].check, check))
                        return true;
        return false;
}

static void fix_selinux_part(struct way *way, struct nd_pod_selinux only, const char **part, const char *path) {
        if (!is_forbidden(way, "seLinuxOptions", &(struct nd_pod_context) {.selinux = &only}))
                return;
        *part = nullptr;
        note(way, nullptr, "%s", path);
}

static void fix_selinux_options(struct way *way, struct nd_pod_selinux **options, const char *path) {
        struct nd_pod_selinux *o;

        if (!*options)
                return;
        o = *options = fresh(way, *options, sizeof **options);
        fix_selinux_part(way, (struct nd_pod_selinux) {.type = o->type}, &o->type,
                         nd_arena_format(way->arena, "%s.type", path));
        fix_selinux_part(way, (struct nd_pod_selinux) {.user = o->user}, &o->user,
                         nd_arena_format(way->arena, "%s.user", path));
        fix_selinux_part(way, (struct nd_pod_selinux) {.role = o->role}, &o->role,
                         nd_arena_format(way->arena, "%s.role", path));
}

static void fix_selinux(struct way *way) {
        struct place p;

        if (way->pod->spec.security)
                fix_selinux_options(way, &way->pod->spec.security->selinux, "spec.securityContext.seLinuxOptions");
        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security)
                        fix_selinux_options(way, &p.container->security->selinux,
                                            nd_arena_format(way->arena, AT "seLinuxOptions", p.list, p.number));
}

static bool profile_is_good(const struct nd_pod_profile *profile) {
        return nd_streq(nd_kube_or_empty(profile->type), "RuntimeDefault") ||
               nd_streq(nd_kube_or_empty(profile->type), "Localhost");
}

static void remove_annotations(struct way *way, const char *part) {
        struct nd_shape_pairs *pairs = &way->pod->metadata.annotations;
        size_t kept = 0;

        for (size_t i = 0; i < pairs->count; i++) {
                if (strstr(pairs->items[i].key, part))
                        note(way, nullptr, "metadata.annotations[%s]", pairs->items[i].key);
                else
                        pairs->items[kept++] = pairs->items[i];
        }
        pairs->count = kept;
}

static void fix_apparmor(struct way *way) {
        struct nd_pod_context *context = way->pod->spec.security;
        struct place p;

        if (context && context->apparmor && !profile_is_good(context->apparmor)) {
                context->apparmor = nullptr;
                note(way, nullptr, "spec.securityContext.appArmorProfile");
        }
        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->apparmor &&
                    !profile_is_good(p.container->security->apparmor)) {
                        p.container->security->apparmor = nullptr;
                        note(way, nullptr, AT "appArmorProfile", p.list, p.number);
                }
        remove_annotations(way, "apparmor.security.beta.kubernetes.io/");
}

static void remove_bad_seccomp(struct way *way) {
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->seccomp &&
                    !profile_is_good(p.container->security->seccomp)) {
                        p.container->security->seccomp = nullptr;
                        note(way, nullptr, AT "seccompProfile", p.list, p.number);
                }
}

static void fix_seccomp_baseline(struct way *way) {
        struct nd_pod_context *context = way->pod->spec.security;

        if (context && context->seccomp && !profile_is_good(context->seccomp)) {
                context->seccomp = nullptr;
                note(way, nullptr, "spec.securityContext.seccompProfile");
        }
        remove_bad_seccomp(way);
        remove_annotations(way, "seccomp.security.alpha.kubernetes.io/");
}

static void fix_seccomp_restricted(struct way *way) {
        struct nd_pod_context *context = nd_pod_own_context(way->pod, way->arena);

        remove_bad_seccomp(way);
        if (context->seccomp && profile_is_good(context->seccomp))
                return;
        context->seccomp = nd_arena_new(way->arena, struct nd_pod_profile);
        context->seccomp->type = "RuntimeDefault";
        note(way, "\"RuntimeDefault\"", "spec.securityContext.seccompProfile.type");
}

static void fix_sysctls(struct way *way) {
        struct nd_pod_context *context = way->pod->spec.security;
        struct nd_pod_sysctl *kept;
        size_t count = 0;

        if (!context)
                return;
        kept = nd_arena_alloc(way->arena, context->sysctls.count, sizeof *kept);
        for (size_t i = 0; i < context->sysctls.count; i++) {
                struct nd_pod_context only = {.sysctls = {.items = &context->sysctls.items[i], .count = 1}};

                if (is_forbidden(way, "sysctls", &only))
                        note(way, nullptr, "spec.securityContext.sysctls[%zu]", i);
                else
                        kept[count++] = context->sysctls.items[i];
        }
        context->sysctls.items = kept;
        context->sysctls.count = count;
}

static void fix_host_process(struct way *way) {
        struct nd_pod_context *context = way->pod->spec.security;
        struct place p;

        if (context && context->windows && context->windows->host_process == ND_ON) {
                context->windows = nullptr;
                note(way, nullptr, "spec.securityContext.windowsOptions.hostProcess");
        }
        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->windows &&
                    p.container->security->windows->host_process == ND_ON) {
                        p.container->security->windows = nullptr;
                        note(way, nullptr, AT "windowsOptions.hostProcess", p.list, p.number);
                }
}

static void fix_non_root(struct way *way) {
        struct nd_pod_context *context = nd_pod_own_context(way->pod, way->arena);
        struct place p;

        for (size_t i = 0; next_container(way, i, &p); i++)
                if (p.container->security && p.container->security->run_as_non_root == ND_OFF) {
                        p.container->security->run_as_non_root = ND_UNSET;
                        note(way, nullptr, AT "runAsNonRoot", p.list, p.number);
                }
        if (context->run_as_non_root == ND_ON)
                return;
        context->run_as_non_root = ND_ON;
        note(way, "true", "spec.securityContext.runAsNonRoot");
}

static void fix_user(struct way *way) {
        struct nd_pod_context *context = way->pod->spec.security;
        struct place p;

        if (context && context->run_as_user.set && context->run_as_user.value == 0) {
                context->run_as_user = (struct nd_shape_int) {};
                note(way, nullptr, "spec.securityContext.runAsUser");
        }
        for (size_t i = 0; next_container(way, i, &p); i++) {
                struct nd_pod_container_context *own = p.container->security;

                if (!own || !own->run_as_user.set || own->run_as_user.value != 0)
                        continue;
                own->run_as_user = (struct nd_shape_int) {};
                note(way, nullptr, AT "runAsUser", p.list, p.number);
        }
}

static const struct {
        const char *check;
        void (*fix)(struct way *way);
} fixers[] = {
        {"appArmorProfile", fix_apparmor},
        {"capabilities_baseline", fix_capabilities_baseline},
        {"hostNamespaces", fix_host_namespaces},
        {"hostPathVolumes", fix_host_paths},
        {"hostPorts", fix_host_ports},
        {"hostProbesAndHostLifecycle", fix_host_probes},
        {"privileged", fix_privileged},
        {"procMount", fix_proc_mount},
        {"seLinuxOptions", fix_selinux},
        {"seccompProfile_baseline", fix_seccomp_baseline},
        {"sysctls", fix_sysctls},
        {"windowsHostProcess", fix_host_process},
        {"allowPrivilegeEscalation", fix_escalation},
        {"capabilities_restricted", fix_capabilities_restricted},
        {"procMount_restricted", fix_proc_mount},
        {"restrictedVolumes", fix_volumes},
        {"runAsNonRoot", fix_non_root},
        {"runAsUser", fix_user},
        {"seccompProfile_restricted", fix_seccomp_restricted},
};

static void fix(struct way *way, const char *check) {
        for (size_t i = 0; i < nd_count_of(fixers); i++)
                if (nd_streq(fixers[i].check, check))
                        fixers[i].fix(way);
}

void nd_advice_fields(const struct nd_pod *pod, const struct nd_podsecurity_rule *rule, const char *check,
                      struct nd_arena *arena, struct nd_advice *ret) {
        struct way way = {.pod = nd_pod_copy(pod, arena), .arena = arena, .rule = rule};

        fix(&way, check);
        *ret = way.advice;
}

static void walk(struct way *way) {
        struct nd_podsecurity_findings findings;

        for (int round = 0; round <= ROUNDS; round++) {
                nd_podsecurity_evaluate(way->rule, way->pod, way->arena, &findings);
                way->advice.reached = findings.count == 0;
                if (way->advice.reached)
                        return;
                for (size_t i = 0; i < findings.count; i++)
                        fix(way, findings.items[i].check);
        }
}

/* With a user namespace. Host namespaces must go anyway, since only the level privileged allows
 * them. */
static bool begin_with_user_namespace(struct way *way, bool host_network_gate) {
        if (way->pod->spec.host_users == ND_OFF)
                return false;
        fix_host_namespaces(way);
        if (nd_hostusers_obstacle(way->pod, host_network_gate)[0] != '\0')
                return false;
        way->pod->spec.host_users = ND_OFF;
        way->advice.user_namespace = true;
        note(way, "false", "spec.hostUsers");
        return true;
}

void nd_advice_find(const struct nd_pod *pod, const struct nd_podsecurity_rule *rule, bool host_network_gate,
                    struct nd_arena *arena, struct nd_advice *ret) {
        struct way without = {.pod = nd_pod_copy(pod, arena), .arena = arena, .rule = rule};
        struct way with = {.pod = nd_pod_copy(pod, arena), .arena = arena, .rule = rule};
        bool possible;

        walk(&without);
        possible = without.advice.edits.count > 0 && begin_with_user_namespace(&with, host_network_gate);
        if (possible)
                walk(&with);
        if (possible && with.advice.reached &&
            (!without.advice.reached || with.advice.edits.count <= without.advice.edits.count)) {
                *ret = with.advice;
                nd_advice_done(&without.advice);
        } else {
                *ret = without.advice;
                nd_advice_done(&with.advice);
        }
}
