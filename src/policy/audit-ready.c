/* SPDX-License-Identifier: Apache-2.0 */
/* audit-ready.c - whether a workload would run as it does now with hostUsers: false
 *
 * Theory of operation
 *   Everything that a pod asks for is looked up in a list of what is known to work; what is not on
 *   it is a reason. A reason either rules the user namespace out (the API refuses it, or the pod
 *   cannot start or loses what it asked for) or must be checked by a person. So a verdict of yes
 *   needs no unknown at all, and a new kind of volume or capability is never a yes by mistake.
 * Not visible from the API
 *   what a program does inside: that it expects to be the host's root although its pod asks for
 *   nothing of the host; owners above 65535 in an image, unless the caller knows them. */
#include <string.h>

#include "policy/audit.h"
#include "policy/hostusers.h"

enum {
        WINDOW = ND_SCC_WINDOW,
};

static void add(struct nd_audit_readiness *found, enum nd_audit_verdict verdict, const char *reason) {
        if (verdict > found->verdict)
                found->verdict = verdict;
        if (found->reason_count < ND_AUDIT_REASONS)
                found->reasons[found->reason_count] = reason;
        found->reason_count++;
}

/* One answer to everything about a pod. */
struct judging {
        const struct nd_audit_cluster *cluster;
        const struct nd_audit_workload *workload;
        struct nd_arena *arena;
        struct nd_audit_readiness *found;
};

[[gnu::format(printf, 3, 4)]] static void say(const struct judging *j, enum nd_audit_verdict verdict, const char *format,
                                              ...) {
        va_list arguments;

        va_start(arguments, format);
        add(j->found, verdict, nd_arena_format_va(j->arena, format, arguments));
        va_end(arguments);
}

/* ---- capabilities ---- */

/* They apply to the pod's own namespaces and files, and lose nothing in a user namespace. */
static const char *const own_capabilities[] = {"CHOWN",  "DAC_OVERRIDE", "FOWNER",           "FSETID",     "IPC_OWNER",
                                               "KILL",   "NET_ADMIN",    "NET_BIND_SERVICE", "NET_RAW",    "SETFCAP",
                                               "SETGID", "SETPCAP",      "SETUID",           "SYS_CHROOT", "SYS_PTRACE"};
/* The kernel asks for them in its first user namespace alone. */
static const char *const host_capabilities[] = {
        "AUDIT_CONTROL", "AUDIT_READ", "BLOCK_SUSPEND",  "IPC_LOCK",   "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE",
        "MKNOD",         "SYSLOG",     "SYS_BOOT",       "SYS_MODULE", "SYS_NICE",        "SYS_PACCT", "SYS_RAWIO",
        "SYS_RESOURCE",  "SYS_TIME",   "SYS_TTY_CONFIG", "WAKE_ALARM", "PERFMON",         "BPF",       "ALL"};

static bool is_in(const char *const *list, size_t count, const char *name) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(list[i], name))
                        return true;
        return false;
}

static void judge_capability(const struct judging *j, const char *container, const char *name) {
        const char *plain = nd_has_prefix(name, "CAP_") ? name + strlen("CAP_") : name;

        if (is_in(own_capabilities, nd_count_of(own_capabilities), plain))
                return;
        if (is_in(host_capabilities, nd_count_of(host_capabilities), plain))
                say(j, ND_AUDIT_NO, "capability %s of container %s has no effect in a user namespace", plain, container);
        else
                say(j, ND_AUDIT_CHECK, "capability %s of container %s is limited in a user namespace", plain, container);
}

/* ---- IDs ---- */

static void judge_id(const struct judging *j, const char *field, int64_t id) {
        if (id < 0 || id >= WINDOW)
                say(j, ND_AUDIT_NO, "%s %lld is above %d, the last ID of a user namespace", field, (long long) id, WINDOW - 1);
}

static void judge_optional(const struct judging *j, const char *field, struct nd_shape_int id) {
        if (id.set)
                judge_id(j, field, id.value);
}

static void judge_pod_ids(const struct judging *j, const struct nd_pod_context *context) {
        if (!context)
                return;
        judge_optional(j, "runAsUser", context->run_as_user);
        judge_optional(j, "runAsGroup", context->run_as_group);
        judge_optional(j, "fsGroup", context->fs_group);
        for (size_t i = 0; i < context->supplemental_groups.count; i++)
                judge_id(j, "supplementalGroups", context->supplemental_groups.items[i]);
}

/* ---- containers ---- */

static void judge_context(const struct judging *j, const char *name, const struct nd_pod_container_context *context) {
        if (!context)
                return;
        judge_optional(j, "runAsUser", context->run_as_user);
        judge_optional(j, "runAsGroup", context->run_as_group);
        if (context->privileged == ND_ON)
                say(j, ND_AUDIT_NO, "container %s is privileged", name);
        for (size_t i = 0; context->capabilities && i < context->capabilities->add.count; i++)
                judge_capability(j, name, context->capabilities->add.items[i]);
        if (context->selinux && *nd_kube_or_empty(context->selinux->type))
                say(j, ND_AUDIT_CHECK, "container %s has the SELinux type %s", name, context->selinux->type);
}

static void judge_mounts(const struct judging *j, const struct nd_pod_container *c) {
        nd_list_each(mount, &c->volume_mounts) {
                const char *propagation = nd_kube_or_empty(mount->propagation);

                if (nd_streq(propagation, "Bidirectional"))
                        say(j, ND_AUDIT_NO, "volume %s is mounted with propagation to the host",
                            nd_kube_or_empty(mount->name));
                else if (*propagation && !nd_streq(propagation, "None"))
                        say(j, ND_AUDIT_CHECK, "volume %s is mounted with propagation from the host",
                            nd_kube_or_empty(mount->name));
        }
}

static void judge_image(const struct judging *j, const struct nd_pod_container *c) {
        const char *image = nd_kube_or_empty(c->image);
        uintptr_t known = (uintptr_t) nd_map_get(&j->cluster->images, image);

        if (known > WINDOW)
                say(j, ND_AUDIT_NO, "image %s has files of ID %llu", image, (unsigned long long) known - 1);
}

static void judge_containers(const struct judging *j, const struct nd_pod_spec *spec) {
        const struct nd_pod_container *c;

        for (size_t i = 0; i < spec->init_containers.count + spec->containers.count; i++) {
                c = nd_pod_container(spec, i);
                judge_context(j, nd_kube_or_empty(c->name), c->security);
                judge_mounts(j, c);
                judge_image(j, c);
        }
}

/* ---- volumes ---- */

/* Filesystems on a block device that can be idmapped. */
static const char *const idmapped[] = {"ext2", "ext3", "ext4", "xfs", "btrfs"};
/* Drivers of block devices; with a filesystem that is not named, all of them make ext4 or xfs. */
static const char *const block_drivers[] = {"cinder.csi.openstack.org", "csi.hetzner.cloud",          "csi.vsphere.vmware.com",
                                            "disk.csi.azure.com",       "dobs.csi.digitalocean.com",  "driver.longhorn.io",
                                            "ebs.csi.aws.com",          "local.csi.openebs.io",       "pd.csi.storage.gke.io",
                                            "rbd.csi.ceph.com",         "rook-ceph.rbd.csi.ceph.com", "topolvm.io"};
/* Drivers of network filesystems that cannot be idmapped. */
static const char *const file_drivers[] = {"efs.csi.aws.com",
                                           "file.csi.azure.com",
                                           "filestore.csi.storage.gke.io",
                                           "fsx.csi.aws.com",
                                           "gcsfuse.csi.storage.gke.io",
                                           "nfs.csi.k8s.io",
                                           "s3.csi.aws.com",
                                           "smb.csi.k8s.io"};

static void judge_driver(const struct judging *j, const char *volume, const struct nd_audit_volume *found) {
        bool block = is_in(block_drivers, nd_count_of(block_drivers), found->driver);
        bool plain = !*found->filesystem || is_in(idmapped, nd_count_of(idmapped), found->filesystem);

        if (is_in(file_drivers, nd_count_of(file_drivers), found->driver))
                say(j, ND_AUDIT_NO, "volume %s is of driver %s, whose filesystem cannot be idmapped", volume, found->driver);
        else if (!block || !plain)
                say(j, ND_AUDIT_CHECK, "volume %s is of driver %s%s%s: its filesystem must support idmapped mounts", volume,
                    found->driver, *found->filesystem ? ", filesystem " : "", found->filesystem);
}

static void judge_persistent(const struct judging *j, const char *volume, const struct nd_audit_volume *found) {
        if (nd_streq(found->source, "nfs") || nd_streq(found->source, "glusterfs") || nd_streq(found->source, "azureFile"))
                say(j, ND_AUDIT_NO, "volume %s is of type %s, which cannot be idmapped", volume, found->source);
        else if (nd_streq(found->source, "csi"))
                judge_driver(j, volume, found);
        else
                say(j, ND_AUDIT_CHECK, "volume %s is of type %s: its filesystem must support idmapped mounts", volume,
                    *found->source ? found->source : "unknown");
}

static void judge_claim(const struct judging *j, const char *volume, const char *name) {
        nd_autofree char *key = nd_format("%s/%s", j->workload->namespace, name);
        const struct nd_audit_claim *claim = nd_map_get(&j->cluster->claims, key);
        const struct nd_audit_volume *found =
                claim && *claim->volume ? nd_map_get(&j->cluster->volumes, claim->volume) : nullptr;

        if (claim && claim->block)
                say(j, ND_AUDIT_NO, "volume %s is a block device", volume);
        else if (!found)
                say(j, ND_AUDIT_CHECK, "the volume of claim %s is not known", name);
        else
                judge_persistent(j, volume, found);
}

static bool is_below(const char *path, const char *directory) {
        size_t length = strlen(directory);

        return strncmp(path, directory, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void judge_host_path(const struct judging *j, const char *volume, const struct nd_pod_host_path *host) {
        static const char *const kernel[] = {"/dev", "/proc", "/sys"};
        const char *path = nd_kube_or_empty(host ? host->path : nullptr),
                   *type = nd_kube_or_empty(host ? host->type : nullptr);
        bool device = nd_streq(type, "BlockDevice") || nd_streq(type, "CharDevice");

        for (size_t i = 0; i < nd_count_of(kernel); i++)
                device |= is_below(path, kernel[i]);
        if (device)
                say(j, ND_AUDIT_NO, "volume %s is %s of the host", volume, path);
        else
                say(j, ND_AUDIT_CHECK, "volume %s is %s of the host: its filesystem must support idmapped mounts", volume,
                    path);
}

static void judge_volume(const struct judging *j, const struct nd_pod_volume *volume) {
        static const uint64_t fine = UINT64_C(1) << ND_VOLUME_CONFIG_MAP | UINT64_C(1) << ND_VOLUME_SECRET |
                                     UINT64_C(1) << ND_VOLUME_DOWNWARD_API | UINT64_C(1) << ND_VOLUME_PROJECTED;
        static const uint64_t network =
                UINT64_C(1) << ND_VOLUME_NFS | UINT64_C(1) << ND_VOLUME_GLUSTERFS | UINT64_C(1) << ND_VOLUME_AZURE_FILE;
        const char *name = nd_kube_or_empty(volume->name), *medium;

        if (volume->sources != 0 && (volume->sources & ~fine) == 0)
                return;
        if (volume->sources == nd_pod_volume_bit(ND_VOLUME_EMPTY_DIR)) {
                medium = nd_kube_or_empty(volume->empty_dir ? volume->empty_dir->medium : nullptr);
                if (*medium && !nd_streq(medium, "Memory"))
                        say(j, ND_AUDIT_CHECK, "volume %s has the medium %s", name, medium);
        } else if (volume->sources == nd_pod_volume_bit(ND_VOLUME_PERSISTENT_VOLUME_CLAIM)) {
                judge_claim(j, name, nd_kube_or_empty(volume->claim ? volume->claim->name : nullptr));
        } else if (volume->sources == nd_pod_volume_bit(ND_VOLUME_HOST_PATH)) {
                judge_host_path(j, name, volume->host_path);
        } else if (volume->sources & network) {
                say(j, ND_AUDIT_NO, "volume %s is a network filesystem that cannot be idmapped", name);
        } else {
                const char *type = "an unknown type";

                for (size_t i = 0; i < ND_VOLUME_SOURCES; i++)
                        if (volume->sources & nd_pod_volume_bit(i))
                                type = nd_pod_volume_source_names[i];
                say(j, ND_AUDIT_CHECK, "volume %s is of type %s: its filesystem must support idmapped mounts", name, type);
        }
}

/* A claim of a stateful set is named after its template and the pod. */
static void judge_claim_templates(const struct judging *j) {
        for (size_t i = 0; i < j->workload->claim_templates.count; i++) {
                const char *template = j->workload->claim_templates.items[i];
                nd_autofree char *claim = nd_format("%s-%s-0", template, j->workload->name);

                judge_claim(j, template, nd_arena_strdup(j->arena, claim));
        }
}

/* ---- nodes ---- */

static void judge_nodes(const struct judging *j) {
        const char *handler = nd_audit_handler(j->cluster, &j->workload->pod), *weak = nullptr;
        const struct nd_map_slot *slot;
        size_t offering = 0, other = 0;

        for (size_t at = 0; (slot = nd_map_next(&j->cluster->nodes, &at));) {
                const struct nd_audit_node *node = slot->value;

                if (!node->schedulable || node->windows)
                        continue;
                if (!node->too_old && handler && nd_shape_texts_have(&node->handlers, handler)) {
                        offering++;
                        continue;
                }
                other++;
                if (!weak || strcmp(node->name, weak) < 0)
                        weak = node->name;
        }
        if (!handler)
                say(j, ND_AUDIT_CHECK, "the runtime class %s is not known", j->workload->pod.spec.runtime_class);
        else if (!j->cluster->known[ND_AUDIT_NODE])
                say(j, ND_AUDIT_CHECK, "the nodes are not known");
        else if (offering == 0)
                say(j, ND_AUDIT_NO, "no schedulable node offers user namespaces%s%s", *handler ? " to handler " : "", handler);
        else if (other > 0)
                say(j, ND_AUDIT_CHECK, "%zu schedulable nodes do not offer user namespaces%s%s, such as %s", other,
                    *handler ? " to handler " : "", handler, weak);
}

/* ---- all of it ---- */

static void judge_sysctls(const struct judging *j, const struct nd_pod_context *context) {
        static const char *const fine[] = {
                "kernel.shm_rmid_forced",      "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
                "net.ipv4.tcp_fin_timeout",    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
                "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_syncookies"};

        if (!context)
                return;
        nd_list_each(sysctl, &context->sysctls) {
                const char *name = nd_kube_or_empty(sysctl->name);

                if (!is_in(fine, nd_count_of(fine), name))
                        say(j, ND_AUDIT_CHECK, "sysctl %s may not exist or be refused in a user namespace", name);
        }
        if (context->selinux && *nd_kube_or_empty(context->selinux->type))
                say(j, ND_AUDIT_CHECK, "the pod has the SELinux type %s", context->selinux->type);
}

static void judge_pod(const struct judging *j) {
        const struct nd_pod_spec *spec = &j->workload->pod.spec;

        judge_pod_ids(j, spec->security);
        judge_sysctls(j, spec->security);
        judge_containers(j, spec);
        nd_list_each(volume, &spec->volumes) judge_volume(j, volume);
        judge_claim_templates(j);
        if (*j->workload->device)
                say(j, ND_AUDIT_CHECK, "a container asks for %s: root of a user namespace may not open the device",
                    j->workload->device);
        if (j->workload->running_id >= WINDOW)
                say(j, ND_AUDIT_NO, "a container runs with ID %lld", (long long) j->workload->running_id);
        judge_nodes(j);
}

/* ---- what the label would do ---- */

struct asking {
        const struct judging *judging;
        bool granted; /* every constraint counts as granted */
};

static bool may_use(const struct nd_scc *scc, void *userdata) {
        const struct asking *a = userdata;
        const struct nd_audit_workload *workload = a->judging->workload;
        const char *account = nd_kube_or_empty(workload->pod.spec.service_account);

        return a->granted || nd_audit_may_use(a->judging->cluster, workload->namespace, *account ? account : "default", scc);
}

/* The user of the first container; -1: its image's. */
static int64_t user_of(const struct nd_pod *pod) {
        const struct nd_pod_container *first = pod->spec.containers.count > 0 ? pod->spec.containers.items : nullptr;

        if (first && first->security && first->security->run_as_user.set)
                return first->security->run_as_user.value;
        return pod->spec.security && pod->spec.security->run_as_user.set ? pod->spec.security->run_as_user.value : -1;
}

static const struct nd_scc *choose(const struct judging *j, bool granted, int64_t *ret_user) {
        const struct nd_audit_namespace *namespace = nd_map_get(&j->cluster->namespaces, j->workload->namespace);
        struct asking asking = {.judging = j, .granted = granted};
        nd_cleanup(nd_scc_choice_done) struct nd_scc_choice choice = {};
        struct nd_scc_request request = {.set = &j->cluster->set,
                                         .namespace = namespace ? namespace->ranges : (struct nd_scc_namespace) {},
                                         .userns = ND_SCC_USERNS_REQUIRE,
                                         .may_set_user_namespace = true,
                                         .host_network_gate = j->cluster->host_network_gate,
                                         .window = ND_SCC_WINDOW,
                                         .may_use = may_use,
                                         .userdata = &asking};

        nd_scc_choose(&request, &j->workload->pod, j->arena, &choice);
        if (choice.scc && user_of(&j->workload->pod) < 0)
                *ret_user = user_of(choice.pod);
        return choice.scc;
}

static void judge_label(const struct judging *j) {
        const struct nd_scc *scc;
        int64_t user = -1, ignored = -1;

        if (j->cluster->constraints.count == 0)
                return;
        scc = choose(j, false, &user);
        if (scc) {
                j->found->constraint = nd_kube_or_empty(scc->metadata.name);
                j->found->user = user;
                return;
        }
        scc = choose(j, true, &ignored);
        j->found->account =
                *nd_kube_or_empty(j->workload->pod.spec.service_account) ? j->workload->pod.spec.service_account : "default";
        j->found->grant = scc ? nd_kube_or_empty(scc->metadata.name) : nullptr;
}

const char *nd_audit_verdict_name(enum nd_audit_verdict verdict) {
        static const char *const names[ND_AUDIT_VERDICTS] = {
                [ND_AUDIT_YES] = "yes", [ND_AUDIT_CHECK] = "check", [ND_AUDIT_NO] = "no", [ND_AUDIT_ALREADY] = "already"};

        return names[verdict];
}

void nd_audit_judge(const struct nd_audit_cluster *cluster, const struct nd_audit_workload *workload, struct nd_arena *arena,
                    struct nd_audit_readiness *ret) {
        const struct judging j = {.cluster = cluster, .workload = workload, .arena = arena, .found = ret};
        const struct nd_pod *pod = &workload->pod;
        const char *obstacle = nd_hostusers_obstacle(pod, cluster->host_network_gate);

        *ret = (struct nd_audit_readiness) {.verdict = ND_AUDIT_YES, .user = -1};
        if (nd_pod_has_user_namespace(pod)) {
                ret->verdict = ND_AUDIT_ALREADY;
                return;
        }
        ret->left_alone = *obstacle || pod->spec.host_users == ND_ON || *workload->mirror;
        if (*obstacle)
                say(&j, ND_AUDIT_NO, "%s excludes a user namespace", obstacle);
        if (pod->spec.host_network && !*obstacle)
                say(&j, ND_AUDIT_CHECK, "the host's network refuses most of what root of a user namespace does");
        if (pod->spec.host_users == ND_ON)
                say(&j, ND_AUDIT_CHECK, "hostUsers is set to true");
        if (*workload->mirror)
                say(&j, ND_AUDIT_CHECK, "it is a static pod: only its manifest on the node can set hostUsers");
        judge_pod(&j);
        if (ret->verdict == ND_AUDIT_YES)
                judge_label(&j);
}
