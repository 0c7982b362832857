/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/constraint-manifest.h"

#include "base/json.h"

enum {
        INDENT = 2,
};

static void write_texts(struct nd_json_out *out, const char *key, const struct nd_shape_texts *texts) {
        if (texts->count == 0)
                return;
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < texts->count; i++)
                nd_json_string(out, nullptr, texts->items[i]);
        nd_json_close(out, ']');
}

static void write_int(struct nd_json_out *out, const char *key, struct nd_shape_int value) {
        if (value.set)
                nd_json_signed(out, key, value.value);
}

static void write_groups(struct nd_json_out *out, const char *key, const struct nd_scc_groups *groups) {
        if (!groups->type)
                return;
        nd_json_open(out, key, '{');
        nd_json_string(out, "type", groups->type);
        if (groups->ranges.count > 0) {
                nd_json_open(out, "ranges", '[');
                nd_list_each(range, &groups->ranges) {
                        nd_json_open(out, nullptr, '{');
                        write_int(out, "min", range->min);
                        write_int(out, "max", range->max);
                        nd_json_close(out, '}');
                }
                nd_json_close(out, ']');
        }
        nd_json_close(out, '}');
}

static void write_user(struct nd_json_out *out, const struct nd_scc_user *user) {
        nd_json_open(out, "runAsUser", '{');
        nd_json_string(out, "type", user->type);
        write_int(out, "uid", user->uid);
        write_int(out, "uidRangeMin", user->min);
        write_int(out, "uidRangeMax", user->max);
        nd_json_close(out, '}');
}

static void write_selinux(struct nd_json_out *out, const struct nd_scc_selinux *selinux) {
        nd_json_open(out, "seLinuxContext", '{');
        nd_json_string(out, "type", selinux->type);
        if (selinux->options) {
                nd_json_open(out, "seLinuxOptions", '{');
                if (selinux->options->type)
                        nd_json_string(out, "type", selinux->options->type);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}

static void write_head(struct nd_json_out *out, const char *group, const struct nd_scc_default *one) {
        nd_autofree char *version = nd_format("%s/v1", group);

        nd_json_string(out, "apiVersion", version);
        nd_json_string(out, "kind", "SecurityContextConstraints");
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", one->scc.metadata.name);
        nd_json_open(out, "annotations", '{');
        nd_json_string(out, "kubernetes.io/description", one->description);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_constraint(struct nd_json_out *out, const struct nd_scc *scc) {
        write_int(out, "priority", scc->priority);
        nd_json_bool(out, "allowPrivilegedContainer", scc->allow_privileged);
        nd_json_bool(out, "allowHostDirVolumePlugin", scc->allow_host_dir);
        nd_json_bool(out, "allowHostNetwork", scc->allow_host_network);
        nd_json_bool(out, "allowHostPorts", scc->allow_host_ports);
        nd_json_bool(out, "allowHostPID", scc->allow_host_pid);
        nd_json_bool(out, "allowHostIPC", scc->allow_host_ipc);
        nd_json_bool(out, "readOnlyRootFilesystem", scc->read_only_root);
        nd_json_bool(out, "allowPrivilegeEscalation", scc->allow_privilege_escalation != ND_OFF);
        nd_json_string(out, "userNamespaceLevel", scc->user_namespace_level);
        write_texts(out, "requiredDropCapabilities", &scc->required_drop);
        write_texts(out, "allowedCapabilities", &scc->allowed_capabilities);
        write_texts(out, "volumes", &scc->volumes);
        write_texts(out, "seccompProfiles", &scc->seccomp_profiles);
        write_texts(out, "allowedUnsafeSysctls", &scc->allowed_unsafe_sysctls);
        write_texts(out, "allowedAppArmorProfiles", &scc->allowed_apparmor);
        write_texts(out, "allowedProcMountTypes", &scc->allowed_proc_mounts);
        write_user(out, &scc->user);
        write_selinux(out, &scc->selinux);
        write_groups(out, "fsGroup", &scc->fs_group);
        write_groups(out, "supplementalGroups", &scc->supplemental_groups);
        write_groups(out, "runAsGroup", &scc->run_as_group);
        write_texts(out, "users", &scc->users);
        write_texts(out, "groups", &scc->groups);
}

void guard_constraint_manifest_write(const struct nd_scc_default *one, const char *group, struct nd_text *text) {
        struct nd_json_out out = {.text = text, .indent = INDENT};

        if (text->length > 0)
                nd_text_add(text, "\n---\n");
        nd_json_open(&out, nullptr, '{');
        write_head(&out, group, one);
        write_constraint(&out, &one->scc);
        nd_json_close(&out, '}');
        nd_text_add(text, "\n");
}
