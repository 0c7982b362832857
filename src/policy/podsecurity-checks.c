/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-checks.c - the checks of the pod security standards
 *
 * The policy is the table of checks near the end. Above it are the checks, except for those of
 * profiles, which are in podsecurity-profiles.c. Each check walks the pod, collects containers with
 * a forbidden setting and the values they use, and formats the finding. Containers are listed in
 * the order of the pod, values are sorted. */
#include "policy/podsecurity-profiles.h"
#include "policy/podsecurity-text.h"

/* Pods that a revision of a check skips. */
enum skips {
        SKIPS_NONE = 0,
        SKIPS_WINDOWS = 1 << 0,
        SKIPS_USER_NAMESPACE = 1 << 1,
};

enum {
        REVISIONS = 6,
};

/* The form of a check from one minor version on. */
struct revision {
        uint32_t from;
        enum skips skips;
        const char *const *allowed; /* ends with nullptr, for checks that have a list */
        /* Sets reason and detail if the pod is not allowed. */
        void (*run)(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding);
};

struct check {
        const char *id; /* nullptr ends the table */
        enum nd_podsecurity_level level;
        const char *overrides; /* a baseline check that is skipped at the restricted level */
        struct revision revisions[REVISIONS];
};

/* ---- capabilities ---- */

/* Adds forbidden items to the set. Returns whether there were any. */
static bool collect_forbidden(const struct nd_shape_texts *added, const char *const *allowed, struct nd_arena *arena,
                              struct nd_podsecurity_names *forbidden) {
        size_t before = forbidden->count;

        for (size_t i = 0; i < added->count; i++)
                if (!nd_podsecurity_is_in(allowed, added->items[i]))
                        nd_podsecurity_names_add(forbidden, arena, added->items[i]);
        return forbidden->count > before;
}

static void put_added(struct nd_text *detail, const struct nd_podsecurity_names *containers,
                      struct nd_podsecurity_names *forbidden) {
        nd_podsecurity_names_unite(forbidden);
        nd_podsecurity_put_containers(detail, containers);
        nd_text_add(detail, " must not include ");
        nd_podsecurity_put_names(detail, forbidden, "\"");
        nd_text_add(detail, " in securityContext.capabilities.add");
}

static void capabilities_baseline(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                  struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {}, forbidden = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c,
                                      pod) if (c->security && c->security->capabilities &&
                                               collect_forbidden(&c->security->capabilities->add, allowed, arena, &forbidden))
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        put_added(&detail, &containers, &forbidden);
        nd_podsecurity_conclude(finding, "non-default capabilities", &detail, arena);
}

static void capabilities_restricted(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                    struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names not_dropping = {}, adding = {}, forbidden = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) {
                const struct nd_pod_capabilities *caps = c->security ? c->security->capabilities : nullptr;

                if (!caps || !nd_shape_texts_have(&caps->drop, "ALL"))
                        nd_podsecurity_names_add(&not_dropping, arena, c->name);
                if (caps && collect_forbidden(&caps->add, allowed, arena, &forbidden))
                        nd_podsecurity_names_add(&adding, arena, c->name);
        }
        if (not_dropping.count == 0 && adding.count == 0)
                return;
        if (not_dropping.count > 0) {
                nd_podsecurity_put_containers(&detail, &not_dropping);
                nd_text_add(&detail, " must set securityContext.capabilities.drop=[\"ALL\"]");
        }
        if (not_dropping.count > 0 && adding.count > 0)
                nd_text_add(&detail, "; ");
        if (adding.count > 0)
                put_added(&detail, &adding, &forbidden);
        nd_podsecurity_conclude(finding, "unrestricted capabilities", &detail, arena);
}

/* ---- the host's namespaces, directories, ports, addresses ---- */

static void host_namespaces(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                            struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names used = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (pod->spec.host_network)
                nd_podsecurity_names_add(&used, arena, "hostNetwork=true");
        if (pod->spec.host_pid)
                nd_podsecurity_names_add(&used, arena, "hostPID=true");
        if (pod->spec.host_ipc)
                nd_podsecurity_names_add(&used, arena, "hostIPC=true");
        if (used.count == 0)
                return;
        nd_podsecurity_put_names(&detail, &used, "");
        nd_podsecurity_conclude(finding, "host namespaces", &detail, arena);
}

static void host_path_volumes(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                              struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names volumes = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_list_each(volume, &pod->spec.volumes) if (volume->sources & nd_pod_volume_bit(ND_VOLUME_HOST_PATH))
                nd_podsecurity_names_add(&volumes, arena, volume->name);
        if (volumes.count == 0)
                return;
        nd_text_add(&detail, nd_podsecurity_plural("volume ", "volumes ", volumes.count));
        nd_podsecurity_put_names(&detail, &volumes, "\"");
        nd_podsecurity_conclude(finding, "hostPath volumes", &detail, arena);
}

static void host_ports(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {}, ports = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) {
                size_t before = ports.count;

                nd_list_each(port, &c->ports) if (port->host_port.value != 0) nd_podsecurity_names_add(
                        &ports, arena, nd_arena_format(arena, "%lld", (long long) port->host_port.value));
                if (ports.count > before)
                        nd_podsecurity_names_add(&containers, arena, c->name);
        }
        if (containers.count == 0)
                return;
        nd_podsecurity_names_unite(&ports);
        nd_podsecurity_put_containers(&detail, &containers);
        nd_text_addf(&detail, " %s %s ", nd_podsecurity_plural("uses", "use", containers.count),
                     nd_podsecurity_plural("hostPort", "hostPorts", ports.count));
        nd_podsecurity_put_names(&detail, &ports, "");
        nd_podsecurity_conclude(finding, "hostPort", &detail, arena);
}

static bool collect_hosts(const struct nd_pod_handler *handler, struct nd_arena *arena, struct nd_podsecurity_names *hosts) {
        size_t before = hosts->count;

        if (handler && handler->http && nd_kube_or_empty(handler->http->host)[0] != '\0')
                nd_podsecurity_names_add(hosts, arena, handler->http->host);
        if (handler && handler->tcp && nd_kube_or_empty(handler->tcp->host)[0] != '\0')
                nd_podsecurity_names_add(hosts, arena, handler->tcp->host);
        return hosts->count > before;
}

static void host_probes(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                        struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {}, hosts = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) {
                bool bad = collect_hosts(c->liveness, arena, &hosts);

                bad |= collect_hosts(c->readiness, arena, &hosts);
                bad |= collect_hosts(c->startup, arena, &hosts);
                bad |= c->lifecycle && collect_hosts(c->lifecycle->post_start, arena, &hosts);
                bad |= c->lifecycle && collect_hosts(c->lifecycle->pre_stop, arena, &hosts);
                if (bad)
                        nd_podsecurity_names_add(&containers, arena, c->name);
        }
        if (containers.count == 0)
                return;
        nd_podsecurity_names_unite(&containers);
        nd_podsecurity_names_unite(&hosts);
        nd_podsecurity_put_containers(&detail, &containers);
        nd_text_addf(&detail, " %s %s ", nd_podsecurity_plural("uses", "use", containers.count),
                     nd_podsecurity_plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.count));
        nd_podsecurity_put_names(&detail, &hosts, "\"");
        nd_podsecurity_conclude(finding, "probe or lifecycle host", &detail, arena);
}

/* A volume with several sources is invalid, but can be evaluated; then the first of these is
 * reported. */
static const enum nd_pod_volume_source forbidden_types[] = {
        ND_VOLUME_HOST_PATH,
        ND_VOLUME_GCE_PERSISTENT_DISK,
        ND_VOLUME_AWS_ELASTIC_BLOCK_STORE,
        ND_VOLUME_GIT_REPO,
        ND_VOLUME_NFS,
        ND_VOLUME_ISCSI,
        ND_VOLUME_GLUSTERFS,
        ND_VOLUME_RBD,
        ND_VOLUME_FLEX_VOLUME,
        ND_VOLUME_CINDER,
        ND_VOLUME_CEPHFS,
        ND_VOLUME_FLOCKER,
        ND_VOLUME_FC,
        ND_VOLUME_AZURE_FILE,
        ND_VOLUME_VSPHERE_VOLUME,
        ND_VOLUME_QUOBYTE,
        ND_VOLUME_AZURE_DISK,
        ND_VOLUME_PHOTON_PERSISTENT_DISK,
        ND_VOLUME_PORTWORX_VOLUME,
        ND_VOLUME_SCALE_IO,
        ND_VOLUME_STORAGEOS,
};

static void restricted_volumes(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                               struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names volumes = {}, types = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_list_each(volume, &pod->spec.volumes) {
                const char *type = "unknown";
                bool good = false;

                for (size_t i = 0; i < ND_VOLUME_SOURCES; i++)
                        if (volume->sources & nd_pod_volume_bit(i) &&
                            nd_podsecurity_is_in(allowed, nd_pod_volume_source_names[i]))
                                good = true;
                if (good)
                        continue;
                for (size_t i = nd_count_of(forbidden_types); i-- > 0;)
                        if (volume->sources & nd_pod_volume_bit(forbidden_types[i]))
                                type = nd_pod_volume_source_names[forbidden_types[i]];
                nd_podsecurity_names_add(&volumes, arena, volume->name);
                nd_podsecurity_names_add(&types, arena, type);
        }
        if (volumes.count == 0)
                return;
        nd_podsecurity_names_unite(&types);
        nd_text_add(&detail, nd_podsecurity_plural("volume ", "volumes ", volumes.count));
        nd_podsecurity_put_names(&detail, &volumes, "\"");
        nd_text_addf(&detail, " %s %s ", nd_podsecurity_plural("uses", "use", volumes.count),
                     nd_podsecurity_plural("restricted volume type", "restricted volume types", types.count));
        nd_podsecurity_put_names(&detail, &types, "\"");
        nd_podsecurity_conclude(finding, "restricted volume types", &detail, arena);
}

/* ---- one flag of a container ---- */

static void privileged(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) if (c->security && c->security->privileged == ND_ON)
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        nd_podsecurity_put_containers(&detail, &containers);
        nd_text_add(&detail, " must not set securityContext.privileged=true");
        nd_podsecurity_conclude(finding, "privileged", &detail, arena);
}

static void privilege_escalation(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) if (!c->security || c->security->allow_privilege_escalation != ND_OFF)
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        nd_podsecurity_put_containers(&detail, &containers);
        nd_text_add(&detail, " must set securityContext.allowPrivilegeEscalation=false");
        nd_podsecurity_conclude(finding, "allowPrivilegeEscalation != false", &detail, arena);
}

static void proc_mount(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names containers = {}, values = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) {
                if (!c->security || !c->security->proc_mount || nd_streq(c->security->proc_mount, "Default"))
                        continue;
                nd_podsecurity_names_add(&containers, arena, c->name);
                nd_podsecurity_names_add(&values, arena, c->security->proc_mount);
        }
        if (containers.count == 0)
                return;
        nd_podsecurity_names_unite(&values);
        nd_podsecurity_put_containers(&detail, &containers);
        nd_text_add(&detail, " must not set securityContext.procMount to ");
        nd_podsecurity_put_names(&detail, &values, "\"");
        nd_podsecurity_conclude(finding, "procMount", &detail, arena);
}

/* ---- users ---- */

static void run_as_non_root(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                            struct nd_podsecurity_finding *finding) {
        enum nd_shape_switch of_pod = pod->spec.security ? pod->spec.security->run_as_non_root : ND_UNSET;
        struct nd_podsecurity_names explicit = {}, implicit = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) {
                enum nd_shape_switch own = c->security ? c->security->run_as_non_root : ND_UNSET;

                if (own == ND_OFF)
                        nd_podsecurity_names_add(&explicit, arena, c->name);
                else if (own == ND_UNSET && of_pod != ND_ON)
                        nd_podsecurity_names_add(&implicit, arena, c->name);
        }
        if (of_pod == ND_OFF || explicit.count > 0) {
                nd_podsecurity_put_setters(&detail, of_pod == ND_OFF, &explicit);
                nd_text_add(&detail, " must not set securityContext.runAsNonRoot=false");
        } else if (implicit.count > 0) {
                nd_text_add(&detail, "pod or ");
                nd_podsecurity_put_containers(&detail, &implicit);
                nd_text_add(&detail, " must set securityContext.runAsNonRoot=true");
        } else {
                return;
        }
        nd_podsecurity_conclude(finding, "runAsNonRoot != true", &detail, arena);
}

static bool is_root(struct nd_shape_int user) {
        return user.set && user.value == 0;
}

static void run_as_user(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                        struct nd_podsecurity_finding *finding) {
        bool pod_is_bad = pod->spec.security && is_root(pod->spec.security->run_as_user);
        struct nd_podsecurity_names containers = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) if (c->security && is_root(c->security->run_as_user))
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        nd_podsecurity_put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " must not set runAsUser=0");
        nd_podsecurity_conclude(finding, "runAsUser=0", &detail, arena);
}

/* ---- the rest ---- */

static void sysctls(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding) {
        struct nd_podsecurity_names forbidden = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (!pod->spec.security)
                return;
        nd_list_each(sysctl, &pod->spec.security->sysctls) if (!nd_podsecurity_is_in(allowed, sysctl->name))
                nd_podsecurity_names_add(&forbidden, arena, sysctl->name);
        if (forbidden.count == 0)
                return;
        nd_podsecurity_put_names(&detail, &forbidden, "");
        nd_podsecurity_conclude(finding, "forbidden sysctls", &detail, arena);
}

static void windows_host_process(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        const struct nd_pod_context *context = pod->spec.security;
        bool pod_is_bad = context && context->windows && context->windows->host_process == ND_ON;
        struct nd_podsecurity_names containers = {};
        nd_autotext struct nd_text detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_podsecurity_each_container(c, pod) if (c->security && c->security->windows &&
                                                  c->security->windows->host_process == ND_ON)
                nd_podsecurity_names_add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        nd_podsecurity_put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " must not set securityContext.windowsOptions.hostProcess=true");
        nd_podsecurity_conclude(finding, "hostProcess", &detail, arena);
}

/* ---- the policy ---- */

static const char *const default_capabilities[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", nullptr,
};
static const char *const bind_service[] = {"NET_BIND_SERVICE", nullptr};
static const char *const volume_types[] = {
        "configMap", "csi",    "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim",
        "projected", "secret", nullptr,
};
#define SELINUX_TYPES "", "container_t", "container_init_t", "container_kvm_t"
static const char *const selinux_types_0[] = {SELINUX_TYPES, nullptr};
static const char *const selinux_types_31[] = {SELINUX_TYPES, "container_engine_t", nullptr};
#define SYSCTLS_0                                                                                                             \
        "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",     \
                "net.ipv4.ip_unprivileged_port_start"
#define SYSCTLS_27 SYSCTLS_0, "net.ipv4.ip_local_reserved_ports"
#define SYSCTLS_29                                                                                                            \
        SYSCTLS_27, "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",                \
                "net.ipv4.tcp_keepalive_probes"
#define SYSCTLS_32 SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
#define SYSCTLS_37 SYSCTLS_32, "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"
static const char *const sysctls_0[] = {SYSCTLS_0, nullptr};
static const char *const sysctls_27[] = {SYSCTLS_27, nullptr};
static const char *const sysctls_29[] = {SYSCTLS_29, nullptr};
static const char *const sysctls_32[] = {SYSCTLS_32, nullptr};
static const char *const sysctls_37[] = {SYSCTLS_37, nullptr};

/* Baseline checks by id, then restricted ones by id. */
static const struct check checks[] = {
        {"appArmorProfile", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = nd_podsecurity_check_apparmor}}},
        {"capabilities_baseline",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = capabilities_baseline, .allowed = default_capabilities}}},
        {"hostNamespaces", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = host_namespaces}}},
        {"hostPathVolumes", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = host_path_volumes}}},
        {"hostPorts", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = host_ports}}},
        {"hostProbesAndHostLifecycle", ND_LEVEL_BASELINE, nullptr, {{.from = 34, .run = host_probes}}},
        {"privileged", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = privileged}}},
        {"procMount",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = proc_mount}, {.from = 35, .run = proc_mount, .skips = SKIPS_USER_NAMESPACE}}},
        {"seLinuxOptions",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = nd_podsecurity_check_selinux, .allowed = selinux_types_0},
          {.from = 31, .run = nd_podsecurity_check_selinux, .allowed = selinux_types_31}}},
        {"seccompProfile_baseline",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = nd_podsecurity_check_seccomp_annotations},
          {.from = 19, .run = nd_podsecurity_check_seccomp_baseline}}},
        {"sysctls",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = sysctls, .allowed = sysctls_0},
          {.from = 27, .run = sysctls, .allowed = sysctls_27},
          {.from = 29, .run = sysctls, .allowed = sysctls_29},
          {.from = 32, .run = sysctls, .allowed = sysctls_32},
          {.from = 37, .run = sysctls, .allowed = sysctls_37}}},
        {"windowsHostProcess", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = windows_host_process}}},

        {"allowPrivilegeEscalation",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 8, .run = privilege_escalation}, {.from = 25, .run = privilege_escalation, .skips = SKIPS_WINDOWS}}},
        {"capabilities_restricted",
         ND_LEVEL_RESTRICTED,
         "capabilities_baseline",
         {{.from = 22, .run = capabilities_restricted, .allowed = bind_service},
          {.from = 25, .run = capabilities_restricted, .allowed = bind_service, .skips = SKIPS_WINDOWS}}},
        {"procMount_restricted", ND_LEVEL_RESTRICTED, "procMount", {{.from = 35, .run = proc_mount}}},
        {"restrictedVolumes",
         ND_LEVEL_RESTRICTED,
         "hostPathVolumes",
         {{.from = 0, .run = restricted_volumes, .allowed = volume_types}}},
        {"runAsNonRoot",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 0, .run = run_as_non_root}, {.from = 35, .run = run_as_non_root, .skips = SKIPS_USER_NAMESPACE}}},
        {"runAsUser",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 23, .run = run_as_user}, {.from = 35, .run = run_as_user, .skips = SKIPS_USER_NAMESPACE}}},
        {"seccompProfile_restricted",
         ND_LEVEL_RESTRICTED,
         "seccompProfile_baseline",
         {{.from = 19, .run = nd_podsecurity_check_seccomp_restricted},
          {.from = 25, .run = nd_podsecurity_check_seccomp_restricted, .skips = SKIPS_WINDOWS}}},
        {},
};

/* ---- evaluation ---- */

static const struct revision *revision_at(const struct check *check, uint64_t minor) {
        const struct revision *newest = nullptr;

        for (const struct revision *r = check->revisions; r->run; r++)
                if (r->from <= minor)
                        newest = r;
        return newest;
}

/* A restricted check replaces the baseline check that it is stricter than. */
static bool is_overridden(const struct check *check, uint64_t minor) {
        for (const struct check *other = checks; other->id; other++)
                if (other->overrides && nd_streq(other->overrides, check->id) && revision_at(other, minor))
                        return true;
        return false;
}

static bool is_spared(const struct nd_podsecurity_rule *rule, const struct revision *revision, const struct nd_pod *pod) {
        return (revision->skips & SKIPS_WINDOWS && nd_pod_is_windows(pod)) ||
               (revision->skips & SKIPS_USER_NAMESPACE && !rule->ignores_user_namespaces && nd_pod_has_user_namespace(pod));
}

void nd_podsecurity_evaluate(const struct nd_podsecurity_rule *rule, const struct nd_pod *pod, struct nd_arena *arena,
                             struct nd_podsecurity_findings *ret) {
        bool newest = rule->version.latest || rule->version.minor > ND_PODSECURITY_NEWEST;
        uint64_t minor = newest ? ND_PODSECURITY_NEWEST : rule->version.minor;

        ret->count = 0;
        for (const struct check *check = checks; check->id; check++) {
                const struct revision *revision = revision_at(check, minor);
                struct nd_podsecurity_finding finding = {.check = check->id};

                if (!revision || check->level > rule->level || is_spared(rule, revision, pod))
                        continue;
                if (rule->level == ND_LEVEL_RESTRICTED && is_overridden(check, minor))
                        continue;
                revision->run(pod, revision->allowed, arena, &finding);
                if (finding.reason)
                        ret->items[ret->count++] = finding;
        }
}
