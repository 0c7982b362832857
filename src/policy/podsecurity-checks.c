/* SPDX-License-Identifier: Apache-2.0 */
/* podsecurity-checks.c - what the pod security standards look at
 *
 * The policy is the table at the end. Above it stand the checks: each walks the pod, collects who does something that is not
 * allowed and which values they use, and words the finding. Containers are told in the order of the pod, values sorted. */
#include "policy/podsecurity-checks.h"

#include <string.h>

/* A growing list in the arena. */
struct names {
        const char **items;
        size_t count;
        size_t capacity;
};

static void add(struct names *names, struct nd_arena *arena, const char *name) {
        if (names->count == names->capacity) {
                size_t capacity = names->capacity > 0 ? names->capacity * 2 : 8;
                const char **items = nd_arena_alloc(arena, capacity, sizeof *items);

                for (size_t i = 0; i < names->count; i++)
                        items[i] = names->items[i];
                names->items = items;
                names->capacity = capacity;
        }
        names->items[names->count++] = nd_or_empty(name);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void make_set(struct names *names) {
        size_t kept = 0;

        if (names->count == 0)
                return;
        qsort(names->items, names->count, sizeof *names->items, compare_names);
        for (size_t i = 1; i < names->count; i++)
                if (!nd_streq(names->items[kept], names->items[i]))
                        names->items[++kept] = names->items[i];
        names->count = kept + 1;
}

static const char *plural(const char *one, const char *many, size_t count) {
        return count == 1 ? one : many;
}

static void put_list(struct nd_text *text, const struct names *names, const char *quote) {
        for (size_t i = 0; i < names->count; i++) {
                nd_text_add(text, i > 0 ? ", " : "");
                nd_text_add(text, quote);
                nd_text_add(text, names->items[i]);
                nd_text_add(text, quote);
        }
}

/* "containers "a", "b"" */
static void put_containers(struct nd_text *text, const struct names *containers) {
        nd_text_add(text, plural("container ", "containers ", containers->count));
        put_list(text, containers, "\"");
}

/* "pod and container "a"" */
static void put_setters(struct nd_text *text, bool pod, const struct names *containers) {
        if (pod)
                nd_text_add(text, "pod");
        if (pod && containers->count > 0)
                nd_text_add(text, " and ");
        if (containers->count > 0)
                put_containers(text, containers);
}

static void conclude(struct nd_podsecurity_finding *finding, const char *reason, const struct nd_text *detail,
                     struct nd_arena *arena) {
        finding->reason = reason;
        finding->detail = nd_arena_copy(arena, nd_text_get(detail), detail->length);
}

static bool is_in(const char *const *allowed, const char *value) {
        for (; *allowed; allowed++)
                if (nd_streq(*allowed, nd_or_empty(value)))
                        return true;
        return false;
}

#define EACH_CONTAINER(c, pod)                                                                                                \
        const struct nd_container *c;                                                                                         \
        for (size_t c##_index = 0; (c = nd_pod_container(&(pod)->spec, c##_index)); c##_index++)

/* --- AppArmor --- */

static bool apparmor_type_is_good(const struct nd_profile *profile) {
        return nd_streq(nd_or_empty(profile->type), "RuntimeDefault") || nd_streq(nd_or_empty(profile->type), "Localhost");
}

static void apparmor_annotations(const struct nd_pod *pod, struct nd_arena *arena, struct names *ret) {
        static const char prefix[] = "container.apparmor.security.beta.kubernetes.io/";
        const struct nd_pairs *annotations = &pod->metadata.annotations;

        for (size_t i = 0; i < annotations->count; i++) {
                const char *key = annotations->items[i].key, *value = annotations->items[i].value;

                if (!nd_has_prefix(key, prefix) || value[0] == '\0' || nd_streq(value, "runtime/default") ||
                    nd_has_prefix(value, "localhost/"))
                        continue;
                nd_autofree char *quoted = nd_quote(value);

                add(ret, arena, nd_arena_format(arena, "%s=%s", key, quoted));
        }
        if (ret->count > 0)
                qsort(ret->items, ret->count, sizeof *ret->items, compare_names);
}

static void apparmor(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                     struct nd_podsecurity_finding *finding) {
        const struct nd_pod_context *context = pod->spec.security;
        bool pod_is_bad = context && context->apparmor && !apparmor_type_is_good(context->apparmor);
        struct names containers = {}, values = {}, annotations = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (pod_is_bad)
                add(&values, arena, context->apparmor->type);
        EACH_CONTAINER(c, pod) {
                if (!c->security || !c->security->apparmor || apparmor_type_is_good(c->security->apparmor))
                        continue;
                add(&containers, arena, c->name);
                add(&values, arena, c->security->apparmor->type);
        }
        apparmor_annotations(pod, arena, &annotations);
        if (!pod_is_bad && containers.count == 0 && annotations.count == 0)
                return;

        put_setters(&detail, pod_is_bad, &containers);
        if (annotations.count > 0)
                nd_text_addf(&detail, "%s%s", detail.length > 0 ? " and " : "",
                             plural("annotation", "annotations", annotations.count));
        make_set(&values);
        for (size_t i = 0; i < annotations.count; i++)
                add(&values, arena, annotations.items[i]);
        nd_text_add(&detail, " must not set AppArmor profile type to ");
        put_list(&detail, &values, "\"");
        conclude(finding, plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.count), &detail, arena);
}

/* --- capabilities --- */

/* Adds what is not allowed to the set, and says whether anything was. */
static bool collect_forbidden(const struct nd_texts *added, const char *const *allowed, struct nd_arena *arena,
                              struct names *forbidden) {
        size_t before = forbidden->count;

        for (size_t i = 0; i < added->count; i++)
                if (!is_in(allowed, added->items[i]))
                        add(forbidden, arena, added->items[i]);
        return forbidden->count > before;
}

static void put_added(struct nd_text *detail, const struct names *containers, struct names *forbidden) {
        make_set(forbidden);
        put_containers(detail, containers);
        nd_text_add(detail, " must not include ");
        put_list(detail, forbidden, "\"");
        nd_text_add(detail, " in securityContext.capabilities.add");
}

static void capabilities_baseline(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                  struct nd_podsecurity_finding *finding) {
        struct names containers = {}, forbidden = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (c->security && c->security->capabilities &&
            collect_forbidden(&c->security->capabilities->add, allowed, arena, &forbidden))
                add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        put_added(&detail, &containers, &forbidden);
        conclude(finding, "non-default capabilities", &detail, arena);
}

static void capabilities_restricted(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                                    struct nd_podsecurity_finding *finding) {
        struct names not_dropping = {}, adding = {}, forbidden = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod) {
                const struct nd_capabilities *caps = c->security ? c->security->capabilities : nullptr;

                if (!caps || !nd_texts_have(&caps->drop, "ALL"))
                        add(&not_dropping, arena, c->name);
                if (caps && collect_forbidden(&caps->add, allowed, arena, &forbidden))
                        add(&adding, arena, c->name);
        }
        if (not_dropping.count == 0 && adding.count == 0)
                return;
        if (not_dropping.count > 0) {
                put_containers(&detail, &not_dropping);
                nd_text_add(&detail, " must set securityContext.capabilities.drop=[\"ALL\"]");
        }
        if (not_dropping.count > 0 && adding.count > 0)
                nd_text_add(&detail, "; ");
        if (adding.count > 0)
                put_added(&detail, &adding, &forbidden);
        conclude(finding, "unrestricted capabilities", &detail, arena);
}

/* --- the host's namespaces, directories, ports, addresses --- */

static void host_namespaces(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                            struct nd_podsecurity_finding *finding) {
        struct names used = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (pod->spec.host_network)
                add(&used, arena, "hostNetwork=true");
        if (pod->spec.host_pid)
                add(&used, arena, "hostPID=true");
        if (pod->spec.host_ipc)
                add(&used, arena, "hostIPC=true");
        if (used.count == 0)
                return;
        put_list(&detail, &used, "");
        conclude(finding, "host namespaces", &detail, arena);
}

static void host_path_volumes(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                              struct nd_podsecurity_finding *finding) {
        struct names volumes = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_list_each(volume, &pod->spec.volumes) if (volume->sources & nd_volume_bit(ND_VOLUME_HOST_PATH))
                add(&volumes, arena, volume->name);
        if (volumes.count == 0)
                return;
        nd_text_add(&detail, plural("volume ", "volumes ", volumes.count));
        put_list(&detail, &volumes, "\"");
        conclude(finding, "hostPath volumes", &detail, arena);
}

static void host_ports(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct names containers = {}, ports = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod) {
                size_t before = ports.count;

                nd_list_each(port, &c->ports) if (port->host_port.value != 0)
                        add(&ports, arena, nd_arena_format(arena, "%lld", (long long) port->host_port.value));
                if (ports.count > before)
                        add(&containers, arena, c->name);
        }
        if (containers.count == 0)
                return;
        make_set(&ports);
        put_containers(&detail, &containers);
        nd_text_addf(&detail, " %s %s ", plural("uses", "use", containers.count),
                     plural("hostPort", "hostPorts", ports.count));
        put_list(&detail, &ports, "");
        conclude(finding, "hostPort", &detail, arena);
}

static bool collect_hosts(const struct nd_handler *handler, struct nd_arena *arena, struct names *hosts) {
        size_t before = hosts->count;

        if (handler && handler->http && nd_or_empty(handler->http->host)[0] != '\0')
                add(hosts, arena, handler->http->host);
        if (handler && handler->tcp && nd_or_empty(handler->tcp->host)[0] != '\0')
                add(hosts, arena, handler->tcp->host);
        return hosts->count > before;
}

static void host_probes(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                        struct nd_podsecurity_finding *finding) {
        struct names containers = {}, hosts = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod) {
                bool bad = collect_hosts(c->liveness, arena, &hosts);

                bad |= collect_hosts(c->readiness, arena, &hosts);
                bad |= collect_hosts(c->startup, arena, &hosts);
                bad |= c->lifecycle && collect_hosts(c->lifecycle->post_start, arena, &hosts);
                bad |= c->lifecycle && collect_hosts(c->lifecycle->pre_stop, arena, &hosts);
                if (bad)
                        add(&containers, arena, c->name);
        }
        if (containers.count == 0)
                return;
        make_set(&containers);
        make_set(&hosts);
        put_containers(&detail, &containers);
        nd_text_addf(&detail, " %s %s ", plural("uses", "use", containers.count),
                     plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.count));
        put_list(&detail, &hosts, "\"");
        conclude(finding, "probe or lifecycle host", &detail, arena);
}

/* A volume with several sources is not valid, but can be asked about; then the first of these is named. */
static const enum nd_volume_source forbidden_types[] = {
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
        struct names volumes = {}, types = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        nd_list_each(volume, &pod->spec.volumes) {
                const char *type = "unknown";
                bool good = false;

                for (size_t i = 0; i < ND_VOLUME_SOURCES; i++)
                        if (volume->sources & nd_volume_bit(i) && is_in(allowed, nd_volume_source_names[i]))
                                good = true;
                if (good)
                        continue;
                for (size_t i = nd_count_of(forbidden_types); i-- > 0;)
                        if (volume->sources & nd_volume_bit(forbidden_types[i]))
                                type = nd_volume_source_names[forbidden_types[i]];
                add(&volumes, arena, volume->name);
                add(&types, arena, type);
        }
        if (volumes.count == 0)
                return;
        make_set(&types);
        nd_text_add(&detail, plural("volume ", "volumes ", volumes.count));
        put_list(&detail, &volumes, "\"");
        nd_text_addf(&detail, " %s %s ", plural("uses", "use", volumes.count),
                     plural("restricted volume type", "restricted volume types", types.count));
        put_list(&detail, &types, "\"");
        conclude(finding, "restricted volume types", &detail, arena);
}

/* --- one flag of a container --- */

static void privileged(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct names containers = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (c->security && c->security->privileged == ND_ON)
                add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        put_containers(&detail, &containers);
        nd_text_add(&detail, " must not set securityContext.privileged=true");
        conclude(finding, "privileged", &detail, arena);
}

static void privilege_escalation(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        struct names containers = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (!c->security || c->security->allow_privilege_escalation != ND_OFF)
                add(&containers, arena, c->name);
        if (containers.count == 0)
                return;
        put_containers(&detail, &containers);
        nd_text_add(&detail, " must set securityContext.allowPrivilegeEscalation=false");
        conclude(finding, "allowPrivilegeEscalation != false", &detail, arena);
}

static void proc_mount(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                       struct nd_podsecurity_finding *finding) {
        struct names containers = {}, values = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod) {
                if (!c->security || !c->security->proc_mount || nd_streq(c->security->proc_mount, "Default"))
                        continue;
                add(&containers, arena, c->name);
                add(&values, arena, c->security->proc_mount);
        }
        if (containers.count == 0)
                return;
        make_set(&values);
        put_containers(&detail, &containers);
        nd_text_add(&detail, " must not set securityContext.procMount to ");
        put_list(&detail, &values, "\"");
        conclude(finding, "procMount", &detail, arena);
}

/* --- SELinux --- */

struct selinux_sins {
        struct names types;
        bool user;
        bool role;
};

static bool collect_selinux(const struct nd_selinux *options, const char *const *allowed, struct nd_arena *arena,
                            struct selinux_sins *sins) {
        bool bad_type, user, role;

        if (!options)
                return false;
        bad_type = !is_in(allowed, options->type);
        user = nd_or_empty(options->user)[0] != '\0';
        role = nd_or_empty(options->role)[0] != '\0';
        if (bad_type)
                add(&sins->types, arena, options->type);
        sins->user |= user;
        sins->role |= role;
        return bad_type || user || role;
}

static void selinux(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding) {
        struct selinux_sins sins = {};
        bool pod_is_bad = pod->spec.security && collect_selinux(pod->spec.security->selinux, allowed, arena, &sins);
        struct names containers = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (c->security && collect_selinux(c->security->selinux, allowed, arena, &sins))
                add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        make_set(&sins.types);
        put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " set forbidden securityContext.seLinuxOptions: ");
        if (sins.types.count > 0) {
                nd_text_add(&detail, plural("type ", "types ", sins.types.count));
                put_list(&detail, &sins.types, "\"");
        }
        if (sins.user)
                nd_text_addf(&detail, "%suser may not be set", sins.types.count > 0 ? "; " : "");
        if (sins.role)
                nd_text_addf(&detail, "%srole may not be set", sins.types.count > 0 || sins.user ? "; " : "");
        conclude(finding, "seLinuxOptions", &detail, arena);
}

/* --- seccomp --- */

static bool seccomp_annotation_is_good(const char *value) {
        return nd_streq(value, "runtime/default") || nd_streq(value, "docker/default") || nd_has_prefix(value, "localhost/");
}

static void collect_annotation(const struct nd_pod *pod, const char *key, struct nd_arena *arena, struct names *forbidden) {
        const char *value = nd_pairs_get(&pod->metadata.annotations, key);

        if (!value || seccomp_annotation_is_good(value))
                return;
        nd_autofree char *quoted = nd_quote(value);

        add(forbidden, arena, nd_arena_format(arena, "%s=%s", key, quoted));
}

static void seccomp_annotations(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                                struct nd_podsecurity_finding *finding) {
        struct names forbidden = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        collect_annotation(pod, "seccomp.security.alpha.kubernetes.io/pod", arena, &forbidden);
        EACH_CONTAINER(c, pod)
        collect_annotation(pod,
                           nd_arena_format(arena, "container.seccomp.security.alpha.kubernetes.io/%s", nd_or_empty(c->name)),
                           arena, &forbidden);
        if (forbidden.count == 0)
                return;
        make_set(&forbidden);
        nd_text_add(&detail, plural("forbidden annotation ", "forbidden annotations ", forbidden.count));
        put_list(&detail, &forbidden, "");
        conclude(finding, "seccompProfile", &detail, arena);
}

static bool seccomp_is_good(const struct nd_profile *profile) {
        return nd_streq(nd_or_empty(profile->type), "Localhost") || nd_streq(nd_or_empty(profile->type), "RuntimeDefault");
}

/* Who sets a bad profile, and who is left with none. */
struct seccomp_sins {
        bool pod;
        struct names containers;
        struct names values;
        struct names without;
};

static void collect_seccomp(const struct nd_pod *pod, struct nd_arena *arena, struct seccomp_sins *sins) {
        const struct nd_profile *of_pod = pod->spec.security ? pod->spec.security->seccomp : nullptr;

        sins->pod = of_pod && !seccomp_is_good(of_pod);
        if (sins->pod)
                add(&sins->values, arena, of_pod->type);
        EACH_CONTAINER(c, pod) {
                const struct nd_profile *profile = c->security ? c->security->seccomp : nullptr;

                if (profile && !seccomp_is_good(profile)) {
                        add(&sins->containers, arena, c->name);
                        add(&sins->values, arena, profile->type);
                } else if (!profile && (!of_pod || sins->pod)) {
                        add(&sins->without, arena, c->name);
                }
        }
        make_set(&sins->values);
}

static bool conclude_bad_seccomp(const struct seccomp_sins *sins, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (!sins->pod && sins->containers.count == 0)
                return false;
        put_setters(&detail, sins->pod, &sins->containers);
        nd_text_add(&detail, " must not set securityContext.seccompProfile.type to ");
        put_list(&detail, &sins->values, "\"");
        conclude(finding, "seccompProfile", &detail, arena);
        return true;
}

static void seccomp_baseline(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                             struct nd_podsecurity_finding *finding) {
        struct seccomp_sins sins = {};

        collect_seccomp(pod, arena, &sins);
        (void) conclude_bad_seccomp(&sins, arena, finding);
}

static void seccomp_restricted(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                               struct nd_podsecurity_finding *finding) {
        struct seccomp_sins sins = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        collect_seccomp(pod, arena, &sins);
        if (conclude_bad_seccomp(&sins, arena, finding) || sins.without.count == 0)
                return;
        nd_text_add(&detail, "pod or ");
        put_containers(&detail, &sins.without);
        nd_text_add(&detail, " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
        conclude(finding, "seccompProfile", &detail, arena);
}

/* --- users --- */

static void run_as_non_root(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                            struct nd_podsecurity_finding *finding) {
        enum nd_switch of_pod = pod->spec.security ? pod->spec.security->run_as_non_root : ND_UNSET;
        struct names explicit = {}, implicit = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod) {
                enum nd_switch own = c->security ? c->security->run_as_non_root : ND_UNSET;

                if (own == ND_OFF)
                        add(&explicit, arena, c->name);
                else if (own == ND_UNSET && of_pod != ND_ON)
                        add(&implicit, arena, c->name);
        }
        if (of_pod == ND_OFF || explicit.count > 0) {
                put_setters(&detail, of_pod == ND_OFF, &explicit);
                nd_text_add(&detail, " must not set securityContext.runAsNonRoot=false");
        } else if (implicit.count > 0) {
                nd_text_add(&detail, "pod or ");
                put_containers(&detail, &implicit);
                nd_text_add(&detail, " must set securityContext.runAsNonRoot=true");
        } else {
                return;
        }
        conclude(finding, "runAsNonRoot != true", &detail, arena);
}

static bool is_root(struct nd_int user) {
        return user.set && user.value == 0;
}

static void run_as_user(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                        struct nd_podsecurity_finding *finding) {
        bool pod_is_bad = pod->spec.security && is_root(pod->spec.security->run_as_user);
        struct names containers = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (c->security && is_root(c->security->run_as_user))
                add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " must not set runAsUser=0");
        conclude(finding, "runAsUser=0", &detail, arena);
}

/* --- the rest --- */

static void sysctls(const struct nd_pod *pod, const char *const *allowed, struct nd_arena *arena,
                    struct nd_podsecurity_finding *finding) {
        struct names forbidden = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        if (!pod->spec.security)
                return;
        nd_list_each(sysctl, &pod->spec.security->sysctls) if (!is_in(allowed, sysctl->name))
                add(&forbidden, arena, sysctl->name);
        if (forbidden.count == 0)
                return;
        put_list(&detail, &forbidden, "");
        conclude(finding, "forbidden sysctls", &detail, arena);
}

static void windows_host_process(const struct nd_pod *pod, [[maybe_unused]] const char *const *allowed, struct nd_arena *arena,
                                 struct nd_podsecurity_finding *finding) {
        const struct nd_pod_context *context = pod->spec.security;
        bool pod_is_bad = context && context->windows && context->windows->host_process == ND_ON;
        struct names containers = {};
        nd_autotext detail = ND_TEXT(ND_PODSECURITY_TEXT);

        EACH_CONTAINER(c, pod)
        if (c->security && c->security->windows && c->security->windows->host_process == ND_ON)
                add(&containers, arena, c->name);
        if (!pod_is_bad && containers.count == 0)
                return;
        put_setters(&detail, pod_is_bad, &containers);
        nd_text_add(&detail, " must not set securityContext.windowsOptions.hostProcess=true");
        conclude(finding, "hostProcess", &detail, arena);
}

/* --- the policy --- */

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
static const char *const sysctls_0[] = {SYSCTLS_0, nullptr};
static const char *const sysctls_27[] = {SYSCTLS_27, nullptr};
static const char *const sysctls_29[] = {SYSCTLS_29, nullptr};
static const char *const sysctls_32[] = {SYSCTLS_32, nullptr};

/* Baseline checks by id, then restricted ones by id. */
const struct check podsecurity_checks[] = {
        {"appArmorProfile", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = apparmor}}},
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
         {{.from = 0, .run = proc_mount}, {.from = 35, .run = proc_mount, .spares = SPARES_USER_NAMESPACE}}},
        {"seLinuxOptions",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = selinux, .allowed = selinux_types_0}, {.from = 31, .run = selinux, .allowed = selinux_types_31}}},
        {"seccompProfile_baseline",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = seccomp_annotations}, {.from = 19, .run = seccomp_baseline}}},
        {"sysctls",
         ND_LEVEL_BASELINE,
         nullptr,
         {{.from = 0, .run = sysctls, .allowed = sysctls_0},
          {.from = 27, .run = sysctls, .allowed = sysctls_27},
          {.from = 29, .run = sysctls, .allowed = sysctls_29},
          {.from = 32, .run = sysctls, .allowed = sysctls_32}}},
        {"windowsHostProcess", ND_LEVEL_BASELINE, nullptr, {{.from = 0, .run = windows_host_process}}},

        {"allowPrivilegeEscalation",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 8, .run = privilege_escalation}, {.from = 25, .run = privilege_escalation, .spares = SPARES_WINDOWS}}},
        {"capabilities_restricted",
         ND_LEVEL_RESTRICTED,
         "capabilities_baseline",
         {{.from = 22, .run = capabilities_restricted, .allowed = bind_service},
          {.from = 25, .run = capabilities_restricted, .allowed = bind_service, .spares = SPARES_WINDOWS}}},
        {"procMount_restricted", ND_LEVEL_RESTRICTED, "procMount", {{.from = 35, .run = proc_mount}}},
        {"restrictedVolumes",
         ND_LEVEL_RESTRICTED,
         "hostPathVolumes",
         {{.from = 0, .run = restricted_volumes, .allowed = volume_types}}},
        {"runAsNonRoot",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 0, .run = run_as_non_root}, {.from = 35, .run = run_as_non_root, .spares = SPARES_USER_NAMESPACE}}},
        {"runAsUser",
         ND_LEVEL_RESTRICTED,
         nullptr,
         {{.from = 23, .run = run_as_user}, {.from = 35, .run = run_as_user, .spares = SPARES_USER_NAMESPACE}}},
        {"seccompProfile_restricted",
         ND_LEVEL_RESTRICTED,
         "seccompProfile_baseline",
         {{.from = 19, .run = seccomp_restricted}, {.from = 25, .run = seccomp_restricted, .spares = SPARES_WINDOWS}}},
        {},
};
