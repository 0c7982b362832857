/* SPDX-License-Identifier: Apache-2.0 */
/* scc-level.c - see scc-level.h
 *
 * Each function returns what one field of the constraint needs; the laxest level wins. */
#include "policy/scc-level.h"

static const char *const baseline_capabilities[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT",
};
static const char *const restricted_volumes[] = {
        "configMap", "csi",  "downwardAPI",           "emptyDir",  "ephemeral",
        "image",     "none", "persistentVolumeClaim", "projected", "secret",
};
static const char *const selinux_types[] = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"};

static bool is_one_of(const char *const *names, size_t count, const char *name) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(names[i], name))
                        return true;
        return false;
}

static enum nd_podsecurity_level laxer(enum nd_podsecurity_level a, enum nd_podsecurity_level b) {
        return a < b ? a : b;
}

static enum nd_podsecurity_level of_host(const struct nd_scc *scc) {
        return scc->allow_privileged || scc->allow_host_dir || scc->allow_host_network || scc->allow_host_ports ||
                               scc->allow_host_pid || scc->allow_host_ipc || nd_scc_allows_volume(scc, "hostPath")
                       ? ND_LEVEL_PRIVILEGED
                       : ND_LEVEL_RESTRICTED;
}

static enum nd_podsecurity_level of_escalation(const struct nd_scc *scc) {
        return scc->allow_privilege_escalation == ND_OFF ? ND_LEVEL_RESTRICTED : ND_LEVEL_BASELINE;
}

static enum nd_podsecurity_level of_added(const struct nd_shape_texts *capabilities) {
        enum nd_podsecurity_level level = ND_LEVEL_RESTRICTED;

        for (size_t i = 0; i < capabilities->count; i++) {
                const char *name = capabilities->items[i];

                if (!is_one_of(baseline_capabilities, nd_count_of(baseline_capabilities), name))
                        return ND_LEVEL_PRIVILEGED;
                if (!nd_streq(name, "NET_BIND_SERVICE"))
                        level = ND_LEVEL_BASELINE;
        }
        return level;
}

static enum nd_podsecurity_level of_capabilities(const struct nd_scc *scc) {
        enum nd_podsecurity_level dropped =
                nd_shape_texts_have(&scc->required_drop, "ALL") ? ND_LEVEL_RESTRICTED : ND_LEVEL_BASELINE;

        return laxer(dropped, laxer(of_added(&scc->allowed_capabilities), of_added(&scc->default_add)));
}

static enum nd_podsecurity_level of_sysctls(const struct nd_scc *scc) {
        for (size_t i = 0; i < scc->allowed_unsafe_sysctls.count; i++)
                if (!nd_shape_texts_have(&nd_scc_safe_sysctls, scc->allowed_unsafe_sysctls.items[i]))
                        return ND_LEVEL_PRIVILEGED;
        return ND_LEVEL_RESTRICTED;
}

static enum nd_podsecurity_level of_volumes(const struct nd_scc *scc) {
        for (size_t i = 0; i < scc->volumes.count; i++)
                if (!is_one_of(restricted_volumes, nd_count_of(restricted_volumes), scc->volumes.items[i]))
                        return ND_LEVEL_BASELINE;
        return ND_LEVEL_RESTRICTED;
}

static enum nd_podsecurity_level of_selinux(const struct nd_scc *scc) {
        const struct nd_pod_selinux *options = scc->selinux.options;

        if (!nd_streq(nd_kube_or_empty(scc->selinux.type), "MustRunAs"))
                return ND_LEVEL_PRIVILEGED;
        if (!options)
                return ND_LEVEL_RESTRICTED;
        return *nd_kube_or_empty(options->user) || *nd_kube_or_empty(options->role) ||
                               !is_one_of(selinux_types, nd_count_of(selinux_types), nd_kube_or_empty(options->type))
                       ? ND_LEVEL_PRIVILEGED
                       : ND_LEVEL_RESTRICTED;
}

static bool is_confining(const char *profile) {
        return nd_streq(profile, "runtime/default") || nd_streq(profile, "docker/default") ||
               nd_has_prefix(profile, "localhost/");
}

/* Without a list no profile is filled in. */
static enum nd_podsecurity_level of_seccomp(const struct nd_scc *scc) {
        if (scc->seccomp_profiles.count == 0)
                return ND_LEVEL_BASELINE;
        for (size_t i = 0; i < scc->seccomp_profiles.count; i++)
                if (!is_confining(scc->seccomp_profiles.items[i]))
                        return nd_scc_requires_user_namespace(scc) ? ND_LEVEL_BASELINE : ND_LEVEL_PRIVILEGED;
        return ND_LEVEL_RESTRICTED;
}

static enum nd_podsecurity_level of_apparmor(const struct nd_scc *scc) {
        for (size_t i = 0; i < scc->allowed_apparmor.count; i++)
                if (!is_confining(scc->allowed_apparmor.items[i]))
                        return ND_LEVEL_PRIVILEGED;
        return ND_LEVEL_RESTRICTED;
}

/* Only a pod with a user namespace can have it, and baseline admits it then. */
static enum nd_podsecurity_level of_proc_mount(const struct nd_scc *scc) {
        return nd_shape_texts_have(&scc->allowed_proc_mounts, "Unmasked") ? ND_LEVEL_BASELINE : ND_LEVEL_RESTRICTED;
}

/* A range without its limits gets those of the namespace, which never contain 0. Restricted admits
 * root of a user namespace. */
static enum nd_podsecurity_level of_user(const struct nd_scc *scc) {
        const char *type = nd_kube_or_empty(scc->user.type);
        bool is_root = nd_streq(type, "MustRunAs")        ? scc->user.uid.set && scc->user.uid.value == 0
                       : nd_streq(type, "MustRunAsRange") ? scc->user.min.set && scc->user.min.value <= 0
                                                          : !nd_streq(type, "MustRunAsNonRoot");

        return is_root && !nd_scc_requires_user_namespace(scc) ? ND_LEVEL_BASELINE : ND_LEVEL_RESTRICTED;
}

enum nd_podsecurity_level nd_scc_level(const struct nd_scc *scc) {
        static enum nd_podsecurity_level (*const needs[])(const struct nd_scc *scc) = {
                of_host,    of_escalation, of_capabilities, of_sysctls,    of_volumes,
                of_selinux, of_seccomp,    of_apparmor,     of_proc_mount, of_user,
        };
        enum nd_podsecurity_level level = ND_LEVEL_RESTRICTED;

        for (size_t i = 0; i < nd_count_of(needs); i++)
                level = laxer(level, needs[i](scc));
        return level;
}
