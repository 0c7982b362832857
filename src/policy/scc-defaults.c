/* SPDX-License-Identifier: Apache-2.0 */
/* scc-defaults.c - the default constraints of the guard
 *
 * OpenShift's, with the subjects of a stock cluster, and one of ours: `userns-root` admits a pod as
 * root of its own user namespace without trusting it. Fields that are not set have the values of
 * nd_scc_default(). */
#include "policy/scc.h"

#define TEXTS(...)                                                                                                            \
        {.items = (const char *[]) {__VA_ARGS__}, .count = sizeof((const char *[]) {__VA_ARGS__}) / sizeof(const char *)}
#define RANGE(first, last)                                                                                                    \
        {.items =                                                                                                             \
                 (struct nd_scc_id_pair[]) {{.min = {.value = (first), .set = true}, .max = {.value = (last), .set = true}}}, \
         .count = 1}
#define USERS(first, last)                                                                                                    \
        {                                                                                                                     \
                .type = "MustRunAsRange", .min = {.value = (first), .set = true}, .max = {.value = (last), .set = true }      \
        }

#define VOLUMES                                                                                                               \
        "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"
#define LEGACY_DROP TEXTS("KILL", "MKNOD", "SETUID", "SETGID")

/* Common to most: no access to the host, IDs and SELinux level of the namespace. */
#define COMMON                                                                                                                \
        .user_namespace_level = "AllowHostLevel", .volumes = TEXTS(VOLUMES), .selinux = {.type = "MustRunAs"},                \
        .user = {.type = "MustRunAsRange"}, .fs_group = {.type = "MustRunAs"}, .supplemental_groups = {.type = "RunAsAny"}
/* OpenShift relies on SELinux, which Debian does not have. */
#define CONFINED .allowed_apparmor = TEXTS("runtime/default")
#define LEGACY .allow_privilege_escalation = ND_ON, .required_drop = LEGACY_DROP
#define V2                                                                                                                    \
        .allow_privilege_escalation = ND_OFF, .required_drop = TEXTS("ALL"),                                                  \
        .allowed_capabilities = TEXTS("NET_BIND_SERVICE"), .seccomp_profiles = TEXTS("runtime/default"), CONFINED
#define NAME(text) .metadata = {.name = (text)}

/* Later initialisers intentionally replace those of the groups above. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

const struct nd_scc_default nd_scc_defaults[] = {
        {.description = "IDs and SELinux level of the namespace, four capabilities dropped",
         .scc = {NAME("restricted"), COMMON, LEGACY, CONFINED}},
        {.description = "IDs and SELinux level of the namespace, no capabilities, the runtime's seccomp profile",
         .for_all_users = true,
         .scc = {NAME("restricted-v2"), COMMON, V2}},
        {.description = "like restricted-v2, in the pod's own user namespace, as a user from 1000 to 65534",
         .for_all_users = true,
         .scc = {NAME("restricted-v3"), COMMON, V2, .user_namespace_level = "RequirePodLevel", .user = USERS(1000, 65534),
                 .fs_group = {.type = "MustRunAs", .ranges = RANGE(1000, 65534)},
                 .supplemental_groups = {.type = "MustRunAs", .ranges = RANGE(1000, 65534)}}},
        {.description = "any user but root, four capabilities dropped",
         .scc = {NAME("nonroot"), COMMON, LEGACY, .user = {.type = "MustRunAsNonRoot"}, .fs_group = {.type = "RunAsAny"}}},
        {.description = "any user but root, no capabilities, the runtime's seccomp profile",
         .scc = {NAME("nonroot-v2"), COMMON, V2, .user = {.type = "MustRunAsNonRoot"}, .fs_group = {.type = "RunAsAny"}}},
        {.description = "containers in a container: any user of the pod's own user namespace, any seccomp profile",
         .scc = {NAME("nested-container"), COMMON, .user_namespace_level = "RequirePodLevel",
                 .allow_privilege_escalation = ND_ON, .allowed_capabilities = TEXTS("SETUID", "SETGID"),
                 .seccomp_profiles = TEXTS("*"),
                 .selinux = {.type = "MustRunAs", .options = &(struct nd_pod_selinux) {.type = "container_engine_t"}},
                 .user = USERS(0, 65534), .fs_group = {.type = "MustRunAs", .ranges = RANGE(0, 65534)},
                 .supplemental_groups = {.type = "MustRunAs", .ranges = RANGE(0, 65534)}}},
        {.description = "root of the pod's own user namespace, without trust: the capabilities of pod security's "
                        "baseline, no access to the host",
         .scc = {NAME("userns-root"), COMMON, .user_namespace_level = "RequirePodLevel", .allow_privilege_escalation = ND_ON,
                 .allowed_capabilities = TEXTS("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
                                               "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
                 .seccomp_profiles = TEXTS("runtime/default"), CONFINED, .user = USERS(0, 65535),
                 .fs_group = {.type = "MustRunAs", .ranges = RANGE(0, 65535)},
                 .supplemental_groups = {.type = "MustRunAs", .ranges = RANGE(0, 65535)},
                 .allowed_proc_mounts = TEXTS("Default")}},
        {.description = "any user, including root of the host",
         .scc = {NAME("anyuid"), COMMON, .priority = {.value = 10, .set = true}, .allow_privilege_escalation = ND_ON,
                 .required_drop = TEXTS("MKNOD"), .user = {.type = "RunAsAny"}, .fs_group = {.type = "RunAsAny"},
                 .groups = TEXTS("system:masters", "kubeadm:cluster-admins")}},
        {.description = "any user, and directories of the host",
         .scc = {NAME("hostmount-anyuid"), COMMON, .allow_host_dir = true, .allow_privilege_escalation = ND_ON,
                 .required_drop = TEXTS("MKNOD"), .volumes = TEXTS(VOLUMES, "hostPath", "nfs"), .user = {.type = "RunAsAny"},
                 .fs_group = {.type = "RunAsAny"},
                 .users = TEXTS("system:serviceaccount:kube-system:persistent-volume-binder")}},
        {.description = "any user, directories of the host, any SELinux context",
         .scc = {NAME("hostmount-anyuid-v2"), COMMON, .allow_host_dir = true, .allow_privilege_escalation = ND_ON,
                 .required_drop = TEXTS("MKNOD"), .volumes = TEXTS(VOLUMES, "hostPath", "nfs"), .user = {.type = "RunAsAny"},
                 .selinux = {.type = "RunAsAny"}, .fs_group = {.type = "RunAsAny"}}},
        {.description = "the host's network and ports, four capabilities dropped",
         .scc = {NAME("hostnetwork"), COMMON, LEGACY, .allow_host_network = true, .allow_host_ports = true,
                 .supplemental_groups = {.type = "MustRunAs"}}},
        {.description = "the host's network and ports, no capabilities, the runtime's seccomp profile",
         .scc = {NAME("hostnetwork-v2"), COMMON, V2, .allow_host_network = true, .allow_host_ports = true,
                 .supplemental_groups = {.type = "MustRunAs"}}},
        {.description = "all namespaces and directories of the host, but IDs of the namespace",
         .scc = {NAME("hostaccess"), COMMON, LEGACY, .allow_host_dir = true, .allow_host_network = true,
                 .allow_host_ports = true, .allow_host_pid = true, .allow_host_ipc = true,
                 .volumes = TEXTS(VOLUMES, "hostPath")}},
        {.description = "everything; a user of this constraint is root on every node",
         .scc = {NAME("privileged"), COMMON, .allow_privileged = true, .allow_host_dir = true, .allow_host_network = true,
                 .allow_host_ports = true, .allow_host_pid = true, .allow_host_ipc = true, .allow_privilege_escalation = ND_ON,
                 .allowed_capabilities = TEXTS("*"), .allowed_unsafe_sysctls = TEXTS("*"), .seccomp_profiles = TEXTS("*"),
                 .volumes = TEXTS("*"), .user = {.type = "RunAsAny"}, .selinux = {.type = "RunAsAny"},
                 .fs_group = {.type = "RunAsAny"},
                 .groups = TEXTS("system:masters", "kubeadm:cluster-admins", "system:nodes")}},
};
#pragma GCC diagnostic pop

const size_t nd_scc_default_count = nd_count_of(nd_scc_defaults);
