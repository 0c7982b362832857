/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/install/install-manifest.h"

#include "base/base64.h"
#include "guard/core/store.h"
#include "guard/install/manifest-access.h"
#include "policy/scc.h"

#include <string.h>

const char *const guard_install_part_names[GUARD_INSTALL_PARTS] = {
        [GUARD_INSTALL_CRD] = "crd",
        [GUARD_INSTALL_CONSTRAINTS] = "constraints",
        [GUARD_INSTALL_RBAC] = "rbac",
        [GUARD_INSTALL_WEBHOOKS] = "webhooks",
        [GUARD_INSTALL_NETWORK] = "network",
        [GUARD_INSTALL_ADMISSION] = "admission",
        [GUARD_INSTALL_KUBECONFIG] = "kubeconfig",
};

enum {
        INDENT = 2,
        LIST_ITEMS = 128, /* the cost of rules is reckoned with the longest lists */
        TEXT_LENGTH = 253,
        SUBJECT_ITEMS = 1024,
};

/* An object with its usual head; closed by end_object(). */
static void begin_object(struct nd_json_out *out, const char *version, const char *kind, const char *name) {
        if (out->text->length > 0)
                nd_text_add(out->text, "\n---\n");
        *out = (struct nd_json_out) {.text = out->text, .indent = INDENT};
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", version);
        nd_json_string(out, "kind", kind);
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", name);
}

static void end_object(struct nd_json_out *out) {
        nd_json_close(out, '}');
        nd_text_add(out->text, "\n");
}

/* ---- the definition of constraints */

enum shape {
        SHAPE_BOOL,
        SHAPE_SWITCH, /* a boolean that may be null */
        SHAPE_PRIORITY,
        SHAPE_TEXTS,
        SHAPE_SUBJECTS,
        SHAPE_LEVEL,
        SHAPE_USER,
        SHAPE_GROUPS,
        SHAPE_SELINUX,
        SHAPE_FLEX,
        SHAPE_GROUPS_POLICY,
};

static const struct {
        const char *name;
        enum shape shape;
        const char *description;
} properties[] = {
        {"priority", SHAPE_PRIORITY, "Constraints with a higher one are tried first; none is 0."},
        {"allowPrivilegedContainer", SHAPE_BOOL, "Whether containers may be privileged."},
        {"defaultAddCapabilities", SHAPE_TEXTS, "Added to containers that do not drop them."},
        {"requiredDropCapabilities", SHAPE_TEXTS, "Dropped from all containers."},
        {"allowedCapabilities", SHAPE_TEXTS, "What containers may add; * is all."},
        {"allowHostDirVolumePlugin", SHAPE_BOOL, "Whether hostPath volumes may be used; it overrides volumes."},
        {"volumes", SHAPE_TEXTS, "Kinds of volumes that may be used; * is all, none is none."},
        {"allowedFlexVolumes", SHAPE_FLEX, "Drivers of flexVolumes; none named is all."},
        {"allowHostNetwork", SHAPE_BOOL, "Whether pods may use the host's network."},
        {"allowHostPorts", SHAPE_BOOL, "Whether containers may ask for ports of the host."},
        {"allowHostPID", SHAPE_BOOL, "Whether pods may see the host's processes."},
        {"allowHostIPC", SHAPE_BOOL, "Whether pods may use the host's IPC."},
        {"userNamespaceLevel", SHAPE_LEVEL, "RequirePodLevel: only pods with hostUsers false."},
        {"defaultAllowPrivilegeEscalation", SHAPE_SWITCH, "Set where a container does not say."},
        {"allowPrivilegeEscalation", SHAPE_SWITCH, "Whether containers may gain privileges; unset is yes."},
        {"seLinuxContext", SHAPE_SELINUX, "Which SELinux context pods have."},
        {"runAsUser", SHAPE_USER, "As which users containers run."},
        {"supplementalGroups", SHAPE_GROUPS, "Which supplemental groups pods have."},
        {"fsGroup", SHAPE_GROUPS, "Which group owns a pod's volumes."},
        {"readOnlyRootFilesystem", SHAPE_BOOL, "Whether containers' root filesystems must be read-only."},
        {"users", SHAPE_SUBJECTS, "Users who may use this; the verb `use` in a role is the better way."},
        {"groups", SHAPE_SUBJECTS, "Groups who may use this."},
        {"seccompProfiles", SHAPE_TEXTS, "Allowed profiles, the first is the default; * is all."},
        {"allowedUnsafeSysctls", SHAPE_TEXTS, "Sysctls beyond the safe ones; a trailing * is a pattern."},
        {"forbiddenSysctls", SHAPE_TEXTS, "Sysctls that may not be set."},
        {"allowedAppArmorProfiles", SHAPE_TEXTS,
         "runtime/default, unconfined, localhost/NAME; a trailing * is a pattern; unset: not looked at."},
        {"allowedProcMountTypes", SHAPE_TEXTS, "Allowed values of procMount; unset: not looked at."},
        {"runAsGroup", SHAPE_GROUPS, "As which groups containers run; unset: not looked at."},
        {"supplementalGroupsPolicy", SHAPE_GROUPS_POLICY, "What pods must set; unset: not looked at."},
};

/* Rules about several fields. has() is false where a field is null. */
static const struct {
        const char *rule, *path, *message;
} rules[] = {
        {"!has(self.allowedCapabilities) || !has(self.requiredDropCapabilities) || "
         "!self.allowedCapabilities.exists(c, c != '*' && c in self.requiredDropCapabilities)",
         ".allowedCapabilities", "capability is listed in allowedCapabilities and requiredDropCapabilities"},
        {"!has(self.defaultAddCapabilities) || !has(self.requiredDropCapabilities) || "
         "!self.defaultAddCapabilities.exists(c, c in self.requiredDropCapabilities)",
         ".defaultAddCapabilities", "capability is listed in defaultAddCapabilities and requiredDropCapabilities"},
        {"!has(self.allowedCapabilities) || !('*' in self.allowedCapabilities) || !has(self.requiredDropCapabilities) || "
         "size(self.requiredDropCapabilities) == 0",
         ".requiredDropCapabilities", "required capabilities must be empty when all capabilities are allowed by a wildcard"},
        {"!has(self.volumes) || !('none' in self.volumes) || size(self.volumes) == 1", ".volumes",
         "if 'none' is specified, no other values are allowed"},
        {"!(has(self.defaultAllowPrivilegeEscalation) && self.defaultAllowPrivilegeEscalation && "
         "has(self.allowPrivilegeEscalation) && !self.allowPrivilegeEscalation)",
         ".defaultAllowPrivilegeEscalation",
         "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true"},
        {"!has(self.allowedFlexVolumes) || size(self.allowedFlexVolumes) == 0 || (has(self.volumes) && "
         "('flexVolume' in self.volumes || '*' in self.volumes))",
         ".allowedFlexVolumes", "volumes does not include 'flexVolume' or '*', so no flex volumes are allowed"},
};

static void write_type(struct nd_json_out *out, const char *type, bool nullable) {
        nd_json_string(out, "type", type);
        if (nullable)
                nd_json_bool(out, "nullable", true);
}

static void write_enum(struct nd_json_out *out, const char *const *values) {
        write_type(out, "string", false);
        nd_json_open(out, "enum", '[');
        for (; *values; values++)
                nd_json_string(out, nullptr, *values);
        nd_json_close(out, ']');
}

static void write_texts_schema(struct nd_json_out *out, uint64_t items) {
        write_type(out, "array", true);
        nd_json_number(out, "maxItems", items);
        nd_json_string(out, "x-kubernetes-list-type", "atomic");
        nd_json_open(out, "items", '{');
        write_type(out, "string", false);
        nd_json_number(out, "maxLength", TEXT_LENGTH);
        nd_json_close(out, '}');
}

static void write_id(struct nd_json_out *out, const char *name) {
        nd_json_open(out, name, '{');
        write_type(out, "integer", true);
        nd_json_string(out, "format", "int64");
        nd_json_number(out, "minimum", 0);
        nd_json_number(out, "maximum", UINT32_MAX);
        nd_json_close(out, '}');
}

static void write_rule(struct nd_json_out *out, const char *rule, const char *path, const char *message) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "rule", rule);
        if (path)
                nd_json_string(out, "fieldPath", path);
        nd_json_string(out, "message", message);
        nd_json_close(out, '}');
}

static void write_user_schema(struct nd_json_out *out) {
        static const char *const types[] = {"MustRunAs", "MustRunAsRange", "MustRunAsNonRoot", "RunAsAny", nullptr};

        write_type(out, "object", true);
        nd_json_open(out, "properties", '{');
        nd_json_open(out, "type", '{');
        write_enum(out, types);
        nd_json_close(out, '}');
        write_id(out, "uid");
        write_id(out, "uidRangeMin");
        write_id(out, "uidRangeMax");
        nd_json_close(out, '}');
        nd_json_open(out, "x-kubernetes-validations", '[');
        write_rule(out, "!has(self.type) || self.type != 'MustRunAs' || has(self.uid)", nullptr, "MustRunAs requires a uid");
        write_rule(out, "!has(self.uidRangeMin) || !has(self.uidRangeMax) || self.uidRangeMin <= self.uidRangeMax", nullptr,
                   "uidRangeMin cannot be greater than uidRangeMax");
        nd_json_close(out, ']');
}

static void write_groups_schema(struct nd_json_out *out) {
        static const char *const types[] = {"MustRunAs", "RunAsAny", "", nullptr};

        write_type(out, "object", true);
        nd_json_open(out, "properties", '{');
        nd_json_open(out, "type", '{');
        write_enum(out, types);
        nd_json_close(out, '}');
        nd_json_open(out, "ranges", '{');
        write_type(out, "array", true);
        nd_json_number(out, "maxItems", LIST_ITEMS);
        nd_json_string(out, "x-kubernetes-list-type", "atomic");
        nd_json_open(out, "items", '{');
        write_type(out, "object", false);
        nd_json_open(out, "properties", '{');
        write_id(out, "min");
        write_id(out, "max");
        nd_json_close(out, '}');
        nd_json_open(out, "x-kubernetes-validations", '[');
        write_rule(out, "!has(self.min) || !has(self.max) || self.min <= self.max", nullptr, "min cannot be greater than max");
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_selinux_schema(struct nd_json_out *out) {
        static const char *const types[] = {"MustRunAs", "RunAsAny", nullptr};
        static const char *const members[] = {"user", "role", "type", "level"};

        write_type(out, "object", true);
        nd_json_open(out, "properties", '{');
        nd_json_open(out, "type", '{');
        write_enum(out, types);
        nd_json_close(out, '}');
        nd_json_open(out, "seLinuxOptions", '{');
        write_type(out, "object", true);
        nd_json_open(out, "properties", '{');
        for (size_t i = 0; i < nd_count_of(members); i++) {
                nd_json_open(out, members[i], '{');
                write_type(out, "string", false);
                nd_json_number(out, "maxLength", TEXT_LENGTH);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_flex_schema(struct nd_json_out *out) {
        write_type(out, "array", true);
        nd_json_number(out, "maxItems", LIST_ITEMS);
        nd_json_string(out, "x-kubernetes-list-type", "atomic");
        nd_json_open(out, "items", '{');
        write_type(out, "object", false);
        nd_json_open(out, "properties", '{');
        nd_json_open(out, "driver", '{');
        write_type(out, "string", false);
        nd_json_number(out, "minLength", 1);
        nd_json_number(out, "maxLength", TEXT_LENGTH);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_schema(struct nd_json_out *out, enum shape shape) {
        static const char *const levels[] = {"AllowHostLevel", "RequirePodLevel", nullptr};
        static const char *const policies[] = {"Merge", "Strict", nullptr};

        switch (shape) {
        case SHAPE_BOOL:
        case SHAPE_SWITCH:
                write_type(out, "boolean", true);
                break;
        case SHAPE_PRIORITY:
                write_type(out, "integer", true);
                nd_json_string(out, "format", "int32");
                nd_json_number(out, "minimum", 0);
                break;
        case SHAPE_TEXTS:
                write_texts_schema(out, LIST_ITEMS);
                break;
        case SHAPE_SUBJECTS:
                write_texts_schema(out, SUBJECT_ITEMS);
                break;
        case SHAPE_LEVEL:
                write_enum(out, levels);
                nd_json_string(out, "default", "AllowHostLevel");
                break;
        case SHAPE_GROUPS_POLICY:
                write_enum(out, policies);
                break;
        case SHAPE_USER:
                write_user_schema(out);
                break;
        case SHAPE_GROUPS:
                write_groups_schema(out);
                break;
        case SHAPE_SELINUX:
                write_selinux_schema(out);
                break;
        case SHAPE_FLEX:
                write_flex_schema(out);
                break;
        }
}

static void write_head_schema(struct nd_json_out *out, const char *name, const char *type) {
        nd_json_open(out, name, '{');
        write_type(out, type, false);
        nd_json_close(out, '}');
}

static void write_root_schema(struct nd_json_out *out) {
        write_type(out, "object", false);
        nd_json_string(out, "description", "Who may run what, with defaults for what a pod leaves open.");
        nd_json_open(out, "properties", '{');
        write_head_schema(out, "apiVersion", "string");
        write_head_schema(out, "kind", "string");
        write_head_schema(out, "metadata", "object");
        for (size_t i = 0; i < nd_count_of(properties); i++) {
                nd_json_open(out, properties[i].name, '{');
                nd_json_string(out, "description", properties[i].description);
                write_schema(out, properties[i].shape);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
        nd_json_open(out, "x-kubernetes-validations", '[');
        for (size_t i = 0; i < nd_count_of(rules); i++)
                write_rule(out, rules[i].rule, rules[i].path, rules[i].message);
        nd_json_close(out, ']');
}

static void write_columns(struct nd_json_out *out) {
        static const struct {
                const char *name, *type, *path;
        } columns[] = {
                {"Priv", "boolean", ".allowPrivilegedContainer"},
                {"Caps", "string", ".allowedCapabilities"},
                {"SELinux", "string", ".seLinuxContext.type"},
                {"RunAsUser", "string", ".runAsUser.type"},
                {"FSGroup", "string", ".fsGroup.type"},
                {"SupGroup", "string", ".supplementalGroups.type"},
                {"Priority", "integer", ".priority"},
                {"UserNS", "string", ".userNamespaceLevel"},
                {"Volumes", "string", ".volumes"},
        };

        nd_json_open(out, "additionalPrinterColumns", '[');
        for (size_t i = 0; i < nd_count_of(columns); i++) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "name", columns[i].name);
                nd_json_string(out, "type", columns[i].type);
                nd_json_string(out, "jsonPath", columns[i].path);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void write_version(struct nd_json_out *out) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", "v1");
        nd_json_bool(out, "served", true);
        nd_json_bool(out, "storage", true);
        write_columns(out);
        nd_json_open(out, "schema", '{');
        nd_json_open(out, "openAPIV3Schema", '{');
        write_root_schema(out);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_crd(struct nd_json_out *out, const struct guard_install_settings *settings) {
        nd_autofree char *name = nd_format("securitycontextconstraints.%s", settings->group);

        begin_object(out, "apiextensions.k8s.io/v1", "CustomResourceDefinition", name);
        nd_json_close(out, '}');
        nd_json_open(out, "spec", '{');
        nd_json_string(out, "group", settings->group);
        nd_json_string(out, "scope", "Cluster");
        nd_json_open(out, "names", '{');
        nd_json_string(out, "kind", "SecurityContextConstraints");
        nd_json_string(out, "listKind", "SecurityContextConstraintsList");
        nd_json_string(out, "plural", "securitycontextconstraints");
        nd_json_string(out, "singular", "securitycontextconstraints");
        nd_json_open(out, "shortNames", '[');
        nd_json_string(out, nullptr, "scc");
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_open(out, "versions", '[');
        write_version(out);
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        end_object(out);
}

/* ---- the default constraints */

static void write_texts(struct nd_json_out *out, const char *key, const struct nd_texts *texts) {
        if (texts->count == 0)
                return;
        nd_json_open(out, key, '[');
        for (size_t i = 0; i < texts->count; i++)
                nd_json_string(out, nullptr, texts->items[i]);
        nd_json_close(out, ']');
}

static void write_int(struct nd_json_out *out, const char *key, struct nd_int value) {
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

static void write_constraint(struct nd_json_out *out, const struct guard_install_settings *settings,
                             const struct nd_scc_default *one) {
        nd_autofree char *version = nd_format("%s/v1", settings->group);
        const struct nd_scc *scc = &one->scc;

        begin_object(out, version, "SecurityContextConstraints", scc->metadata.name);
        nd_json_open(out, "annotations", '{');
        nd_json_string(out, "kubernetes.io/description", one->description);
        nd_json_close(out, '}');
        nd_json_close(out, '}');
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
        end_object(out);
}

#define RBAC "rbac.authorization.k8s.io"

static void write_one(struct nd_json_out *out, const char *key, const char *text) {
        nd_json_open(out, key, '[');
        nd_json_string(out, nullptr, text);
        nd_json_close(out, ']');
}

/* roleRef and subjects of a binding. */
static void write_binding(struct nd_json_out *out, const char *role_kind, const char *role, const char *kind,
                          const char *subject, const char *namespace) {
        nd_json_open(out, "roleRef", '{');
        nd_json_string(out, "apiGroup", RBAC);
        nd_json_string(out, "kind", role_kind);
        nd_json_string(out, "name", role);
        nd_json_close(out, '}');
        nd_json_open(out, "subjects", '[');
        nd_json_open(out, nullptr, '{');
        if (namespace)
                nd_json_string(out, "namespace", namespace);
        else
                nd_json_string(out, "apiGroup", RBAC);
        nd_json_string(out, "kind", kind);
        nd_json_string(out, "name", subject);
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

static void write_grant(struct nd_json_out *out, const struct guard_install_settings *settings,
                        const struct nd_scc_default *one) {
        nd_autofree char *role = nd_format("nodens:scc:%s", one->scc.metadata.name);

        begin_object(out, RBAC "/v1", "ClusterRole", role);
        nd_json_close(out, '}');
        nd_json_open(out, "rules", '[');
        nd_json_open(out, nullptr, '{');
        write_one(out, "apiGroups", settings->group);
        write_one(out, "resources", "securitycontextconstraints");
        write_one(out, "resourceNames", one->scc.metadata.name);
        write_one(out, "verbs", "use");
        nd_json_close(out, '}');
        nd_json_close(out, ']');
        end_object(out);
        if (!one->everybody)
                return;
        begin_object(out, RBAC "/v1", "ClusterRoleBinding", role);
        nd_json_close(out, '}');
        write_binding(out, "ClusterRole", role, "Group", "system:authenticated", nullptr);
        end_object(out);
}

static void write_constraints(struct nd_json_out *out, const struct guard_install_settings *settings) {
        for (size_t i = 0; i < nd_scc_default_count; i++) {
                write_constraint(out, settings, &nd_scc_defaults[i]);
                write_grant(out, settings, &nd_scc_defaults[i]);
        }
}

/* ---- what the guard may do */

static void write_rights(struct nd_json_out *out, const struct guard_install_settings *settings) {
        static const char *const reads[] = {"get", "list", "watch", nullptr}, *const creates[] = {"create", nullptr};
        static const char *const annotates[] = {"get", "list", "watch", "patch", nullptr};
        const struct {
                const char *group, *resource;
                const char *const *verbs;
        } rights[] = {
                {settings->group, "securitycontextconstraints", reads},
                {"", "namespaces", annotates}, /* their ranges */
                {"", "nodes", reads},
                {"", "pods", reads},
                {"node.k8s.io", "runtimeclasses", reads},
                {RBAC, "roles", reads},
                {RBAC, "clusterroles", reads},
                {RBAC, "rolebindings", reads},
                {RBAC, "clusterrolebindings", reads},
                {"authorization.k8s.io", "subjectaccessreviews", creates},
        };

        nd_json_open(out, "rules", '[');
        for (size_t i = 0; i < nd_count_of(rights); i++) {
                nd_json_open(out, nullptr, '{');
                write_one(out, "apiGroups", rights[i].group);
                write_one(out, "resources", rights[i].resource);
                nd_json_open(out, "verbs", '[');
                for (const char *const *verb = rights[i].verbs; *verb; verb++)
                        nd_json_string(out, nullptr, *verb);
                nd_json_close(out, ']');
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

/* What guards share: a Lease and the record of ranges, by their names. Creating cannot be limited to a name. */
static void write_shared_rights(struct nd_json_out *out) {
        static const struct {
                const char *group, *resource;
        } shared[] = {{"coordination.k8s.io", "leases"}, {"", "configmaps"}};

        nd_json_open(out, "rules", '[');
        for (size_t i = 0; i < nd_count_of(shared); i++) {
                nd_json_open(out, nullptr, '{');
                write_one(out, "apiGroups", shared[i].group);
                write_one(out, "resources", shared[i].resource);
                write_one(out, "verbs", "create");
                nd_json_close(out, '}');
                nd_json_open(out, nullptr, '{');
                write_one(out, "apiGroups", shared[i].group);
                write_one(out, "resources", shared[i].resource);
                write_one(out, "resourceNames", "nodens-guard-ranges");
                nd_json_open(out, "verbs", '[');
                nd_json_string(out, nullptr, "get");
                nd_json_string(out, nullptr, "update");
                nd_json_close(out, ']');
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

static void write_rbac(struct nd_json_out *out, const struct guard_install_settings *settings) {
        begin_object(out, "v1", "Namespace", settings->namespace);
        nd_json_close(out, '}');
        end_object(out);
        begin_object(out, "v1", "ServiceAccount", "nodens-guard");
        nd_json_string(out, "namespace", settings->namespace);
        nd_json_close(out, '}');
        end_object(out);
        begin_object(out, RBAC "/v1", "ClusterRole", "nodens:guard");
        nd_json_close(out, '}');
        write_rights(out, settings);
        end_object(out);
        begin_object(out, RBAC "/v1", "ClusterRoleBinding", "nodens:guard");
        nd_json_close(out, '}');
        write_binding(out, "ClusterRole", "nodens:guard", "ServiceAccount", "nodens-guard", settings->namespace);
        end_object(out);
        begin_object(out, RBAC "/v1", "Role", "nodens:guard");
        nd_json_string(out, "namespace", settings->namespace);
        nd_json_close(out, '}');
        write_shared_rights(out);
        end_object(out);
        begin_object(out, RBAC "/v1", "RoleBinding", "nodens:guard");
        nd_json_string(out, "namespace", settings->namespace);
        nd_json_close(out, '}');
        write_binding(out, "Role", "nodens:guard", "ServiceAccount", "nodens-guard", settings->namespace);
        end_object(out);
}

/* ---- webhooks */

static void write_client(struct nd_json_out *out, const struct guard_install_settings *settings, const char *path) {
        nd_autofree char *url = settings->url ? nd_format("%s%s", settings->url, path) : nullptr;
        nd_autofree char *bundle = settings->ca ? nd_base64(settings->ca, strlen(settings->ca)) : nullptr;

        nd_json_open(out, "clientConfig", '{');
        if (url) {
                nd_json_string(out, "url", url);
        } else {
                nd_json_open(out, "service", '{');
                nd_json_string(out, "namespace", settings->namespace);
                nd_json_string(out, "name", settings->service);
                nd_json_string(out, "path", path);
                nd_json_number(out, "port", 443);
                nd_json_close(out, '}');
        }
        if (bundle)
                nd_json_string(out, "caBundle", bundle);
        nd_json_close(out, '}');
}

static void write_expression(struct nd_json_out *out, const char *key, const char *operator, const char * const * values) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "key", key);
        nd_json_string(out, "operator", operator);
        if (values) {
                nd_json_open(out, "values", '[');
                for (; *values; values++)
                        nd_json_string(out, nullptr, *values);
                nd_json_close(out, ']');
        }
        nd_json_close(out, '}');
}

/* Namespaces where constraints are enforced, or those where they are only warned about. A namespace without a label, which has the default
 * mode, is among one or the other; a word that nobody knows enforces, as in the guard. */
static void write_selector(struct nd_json_out *out, const struct guard_install_settings *settings, bool enforce) {
        const char *const own[] = {"kube-system", settings->namespace, nullptr}, *const lax[] = {"off", "warn", nullptr};
        static const char *const off[] = {"off", nullptr}, *const warn[] = {"warn", nullptr};
        bool by_default = nd_streq(settings->default_mode, "enforce") == enforce && !nd_streq(settings->default_mode, "off");

        nd_json_open(out, "namespaceSelector", '{');
        nd_json_open(out, "matchExpressions", '[');
        write_expression(out, "kubernetes.io/metadata.name", "NotIn", own);
        if (enforce) {
                write_expression(out, GUARD_LABEL_CONSTRAINTS, "NotIn", lax);
                if (!by_default)
                        write_expression(out, GUARD_LABEL_CONSTRAINTS, "Exists", nullptr);
        } else if (by_default) {
                const char *const strict[] = {"off", "enforce", nullptr};

                write_expression(out, GUARD_LABEL_CONSTRAINTS, "NotIn", strict);
        } else {
                write_expression(out, GUARD_LABEL_CONSTRAINTS, "NotIn", off);
                write_expression(out, GUARD_LABEL_CONSTRAINTS, "In", warn);
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void write_rule_of(struct nd_json_out *out, const char *group, const char *resource, const char *operation,
                          const char *second) {
        nd_json_open(out, nullptr, '{');
        write_one(out, "apiGroups", group);
        write_one(out, "apiVersions", "v1");
        write_one(out, "resources", resource);
        nd_json_open(out, "operations", '[');
        nd_json_string(out, nullptr, operation);
        if (second)
                nd_json_string(out, nullptr, second);
        nd_json_close(out, ']');
        nd_json_string(out, "scope", nd_streq(resource, "namespaces") ? "*" : "Namespaced");
        nd_json_close(out, '}');
}

static void write_hook_rule(struct nd_json_out *out, const char *resource, const char *operation, const char *second) {
        write_rule_of(out, "", resource, operation, second);
}

static void end_hook(struct nd_json_out *out, bool fails) {
        nd_json_string(out, "failurePolicy", fails ? "Fail" : "Ignore");
        nd_json_string(out, "matchPolicy", "Equivalent");
        nd_json_string(out, "sideEffects", "None");
        nd_json_number(out, "timeoutSeconds", 5);
        write_one(out, "admissionReviewVersions", "v1");
        nd_json_close(out, '}');
}

static void write_hook(struct nd_json_out *out, const struct guard_install_settings *settings, const char *name,
                       const char *path, bool mutating, bool enforce) {
        nd_autofree char *full = nd_format("%s.%s", name, settings->group);

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", full);
        write_client(out, settings, path);
        write_selector(out, settings, enforce);
        nd_json_open(out, "rules", '[');
        write_hook_rule(out, "pods", "CREATE", mutating ? nullptr : "UPDATE");
        write_hook_rule(out, "pods/ephemeralcontainers", "UPDATE", nullptr);
        if (!mutating) {
                write_hook_rule(out, "pods/resize", "UPDATE", nullptr);
                write_hook_rule(out, "pods/exec", "CONNECT", nullptr);
                write_hook_rule(out, "pods/attach", "CONNECT", nullptr);
        }
        nd_json_close(out, ']');
        if (mutating)
                nd_json_string(out, "reinvocationPolicy", "IfNeeded");
        /* What is not filled does not fit: the validating hook refuses it, so the mutating one need not fail. */
        end_hook(out, enforce && !mutating);
}

/* ---- webhooks of pod security
 *
 * One for each label that makes the guard look at a namespace, so that the API server does not call where there is none: what is enforced
 * fails closed, advice does not. Where the defaults ask for something, every namespace is looked at. */

static const struct {
        const char *name;
        const char *label;     /* that is there */
        const char *absent[2]; /* those that are not: another hook sees to them */
        bool pods, templates;
} podsecurity_hooks[] = {
        {"pod-security", "enforce", {}, true, false},
        {"pod-security-templates", "enforce", {}, false, true},
        {"pod-security-warn", "warn", {"enforce"}, true, true},
        {"pod-security-audit", "audit", {"enforce", "warn"}, true, true},
};

static void write_label(struct nd_json_out *out, const char *prefix, const char *label, const char *operator) {
        nd_autofree char *key = nd_format("%s%s", prefix, label);

        write_expression(out, key, operator, nullptr);
}

static void write_template_rules(struct nd_json_out *out) {
        static const struct {
                const char *group, *resource;
        } makers[] = {{"", "podtemplates"},    {"", "replicationcontrollers"}, {"apps", "daemonsets"}, {"apps", "deployments"},
                      {"apps", "replicasets"}, {"apps", "statefulsets"},       {"batch", "cronjobs"},  {"batch", "jobs"}};

        for (size_t i = 0; i < nd_count_of(makers); i++)
                write_rule_of(out, makers[i].group, makers[i].resource, "CREATE", "UPDATE");
}

static void write_podsecurity_hook(struct nd_json_out *out, const struct guard_install_settings *settings, size_t number) {
        const char *const own[] = {settings->namespace, nullptr};
        nd_autofree char *full = nd_format("%s.%s", podsecurity_hooks[number].name, settings->group);
        const char *prefix = settings->standards->prefix;
        bool fails = nd_streq(podsecurity_hooks[number].label, "enforce") && podsecurity_hooks[number].pods;
        bool by_label = guard_standards_are_privileged(&settings->standards->defaults); /* else the hook says nothing about a label */

        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", full);
        write_client(out, settings, by_label && fails ? "/pod-security/enforce" : "/pod-security");
        nd_json_open(out, "namespaceSelector", '{');
        nd_json_open(out, "matchExpressions", '[');
        write_expression(out, "kubernetes.io/metadata.name", "NotIn", own);
        if (by_label) {
                write_label(out, prefix, podsecurity_hooks[number].label, "Exists");
                for (size_t i = 0; i < nd_count_of(podsecurity_hooks[number].absent) && podsecurity_hooks[number].absent[i];
                     i++)
                        write_label(out, prefix, podsecurity_hooks[number].absent[i], "DoesNotExist");
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_open(out, "rules", '[');
        if (podsecurity_hooks[number].pods) {
                write_hook_rule(out, "namespaces", "CREATE", "UPDATE");
                write_hook_rule(out, "pods", "CREATE", "UPDATE");
                write_hook_rule(out, "pods/ephemeralcontainers", "UPDATE", nullptr);
        }
        if (podsecurity_hooks[number].templates)
                write_template_rules(out);
        nd_json_close(out, ']');
        end_hook(out, fails);
}

static void write_podsecurity_hooks(struct nd_json_out *out, const struct guard_install_settings *settings) {
        if (!settings->standards || !settings->standards->prefix)
                return;
        for (size_t i = 0; i < nd_count_of(podsecurity_hooks); i++)
                if (guard_standards_are_privileged(&settings->standards->defaults) || nd_streq(podsecurity_hooks[i].label, "enforce"))
                        write_podsecurity_hook(out, settings, i);
}

#define HOOKS "admissionregistration.k8s.io/v1"

static void write_webhooks(struct nd_json_out *out, const struct guard_install_settings *settings) {
        begin_object(out, HOOKS, "MutatingWebhookConfiguration", "nodens-guard");
        nd_json_close(out, '}');
        nd_json_open(out, "webhooks", '[');
        write_hook(out, settings, "fill", "/mutate/enforce", true, true);
        nd_json_close(out, ']');
        end_object(out);
        begin_object(out, HOOKS, "ValidatingWebhookConfiguration", "nodens-guard");
        nd_json_close(out, '}');
        nd_json_open(out, "webhooks", '[');
        write_hook(out, settings, "enforce", "/validate/enforce", false, true);
        write_hook(out, settings, "warn", "/validate/warn", false, false);
        write_podsecurity_hooks(out, settings);
        nd_json_close(out, ']');
        end_object(out);
}

void guard_install_manifest_write(enum guard_install_part part, const struct guard_install_settings *settings,
                                  struct nd_text *text) {
        struct nd_json_out out = {.text = text, .indent = INDENT};

        switch (part) {
        case GUARD_INSTALL_CRD:
                write_crd(&out, settings);
                break;
        case GUARD_INSTALL_CONSTRAINTS:
                write_constraints(&out, settings);
                break;
        case GUARD_INSTALL_RBAC:
                write_rbac(&out, settings);
                break;
        case GUARD_INSTALL_WEBHOOKS:
                write_webhooks(&out, settings);
                break;
        case GUARD_INSTALL_NETWORK:
                guard_manifest_write_network(settings, text);
                break;
        case GUARD_INSTALL_ADMISSION:
                guard_manifest_write_admission(settings, text);
                break;
        case GUARD_INSTALL_KUBECONFIG:
                guard_manifest_write_kubeconfig(settings, text);
                break;
        case GUARD_INSTALL_PARTS:
                break;
        }
}
