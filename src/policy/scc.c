/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scc.h"

#include <string.h>

static const struct nd_shape_field pair_fields[] = {
        ND_FIELD(nd_scc_id_pair, "min", min, INT),
        ND_FIELD(nd_scc_id_pair, "max", max, INT),
        {},
};
static const struct nd_shape pair_shape = ND_SHAPE_OF(nd_scc_id_pair, pair_fields);

static const struct nd_shape_field user_fields[] = {
        ND_FIELD(nd_scc_user, "type", type, TEXT),
        ND_FIELD(nd_scc_user, "uid", uid, INT),
        ND_FIELD(nd_scc_user, "uidRangeMin", min, INT),
        ND_FIELD(nd_scc_user, "uidRangeMax", max, INT),
        {},
};
static const struct nd_shape user_shape = ND_SHAPE_OF(nd_scc_user, user_fields);

static const struct nd_shape_field groups_fields[] = {
        ND_FIELD(nd_scc_groups, "type", type, TEXT),
        ND_NESTED(nd_scc_groups, "ranges", ranges, LIST, pair_shape),
        {},
};
static const struct nd_shape groups_shape = ND_SHAPE_OF(nd_scc_groups, groups_fields);

static const struct nd_shape_field selinux_fields[] = {
        ND_FIELD(nd_scc_selinux, "type", type, TEXT),
        ND_NESTED(nd_scc_selinux, "seLinuxOptions", options, OBJECT, nd_pod_selinux_shape),
        {},
};
static const struct nd_shape selinux_shape = ND_SHAPE_OF(nd_scc_selinux, selinux_fields);

static const struct nd_shape_field flex_fields[] = {
        ND_FIELD(nd_pod_flex_volume, "driver", driver, TEXT),
        {},
};
static const struct nd_shape flex_shape = ND_SHAPE_OF(nd_pod_flex_volume, flex_fields);

static const struct nd_shape_field scc_fields[] = {
        ND_NESTED(nd_scc, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_FIELD(nd_scc, "priority", priority, INT32),
        ND_FIELD(nd_scc, "allowPrivilegedContainer", allow_privileged, BOOL),
        ND_FIELD(nd_scc, "allowHostDirVolumePlugin", allow_host_dir, BOOL),
        ND_FIELD(nd_scc, "allowHostNetwork", allow_host_network, BOOL),
        ND_FIELD(nd_scc, "allowHostPorts", allow_host_ports, BOOL),
        ND_FIELD(nd_scc, "allowHostPID", allow_host_pid, BOOL),
        ND_FIELD(nd_scc, "allowHostIPC", allow_host_ipc, BOOL),
        ND_FIELD(nd_scc, "readOnlyRootFilesystem", read_only_root, BOOL),
        ND_FIELD(nd_scc, "userNamespaceLevel", user_namespace_level, TEXT),
        ND_FIELD(nd_scc, "defaultAllowPrivilegeEscalation", default_allow_privilege_escalation, SWITCH),
        ND_FIELD(nd_scc, "allowPrivilegeEscalation", allow_privilege_escalation, SWITCH),
        ND_FIELD(nd_scc, "defaultAddCapabilities", default_add, TEXTS),
        ND_FIELD(nd_scc, "requiredDropCapabilities", required_drop, TEXTS),
        ND_FIELD(nd_scc, "allowedCapabilities", allowed_capabilities, TEXTS),
        ND_FIELD(nd_scc, "volumes", volumes, TEXTS),
        ND_NESTED(nd_scc, "allowedFlexVolumes", flex_volumes, LIST, flex_shape),
        ND_NESTED(nd_scc, "seLinuxContext", selinux, INLINE, selinux_shape),
        ND_NESTED(nd_scc, "runAsUser", user, INLINE, user_shape),
        ND_NESTED(nd_scc, "supplementalGroups", supplemental_groups, INLINE, groups_shape),
        ND_NESTED(nd_scc, "fsGroup", fs_group, INLINE, groups_shape),
        ND_FIELD(nd_scc, "users", users, TEXTS),
        ND_FIELD(nd_scc, "groups", groups, TEXTS),
        ND_FIELD(nd_scc, "seccompProfiles", seccomp_profiles, TEXTS),
        ND_FIELD(nd_scc, "allowedUnsafeSysctls", allowed_unsafe_sysctls, TEXTS),
        ND_FIELD(nd_scc, "forbiddenSysctls", forbidden_sysctls, TEXTS),
        ND_FIELD(nd_scc, "allowedAppArmorProfiles", allowed_apparmor, TEXTS),
        ND_FIELD(nd_scc, "allowedProcMountTypes", allowed_proc_mounts, TEXTS),
        ND_NESTED(nd_scc, "runAsGroup", run_as_group, INLINE, groups_shape),
        ND_FIELD(nd_scc, "supplementalGroupsPolicy", groups_policy, TEXT),
        {},
};
const struct nd_shape nd_scc_shape = ND_SHAPE_OF(nd_scc, scc_fields);

static struct nd_error *check_list(const char *field, size_t count) {
        if (count <= ND_SCC_LIST)
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "%s: too many items (%zu, at most %d)", field, count, ND_SCC_LIST);
}

static struct nd_error *check_lists(const struct nd_scc *scc) {
        const struct {
                const char *name;
                size_t count;
        } lists[] = {
                {"defaultAddCapabilities", scc->default_add.count},
                {"requiredDropCapabilities", scc->required_drop.count},
                {"allowedCapabilities", scc->allowed_capabilities.count},
                {"volumes", scc->volumes.count},
                {"allowedFlexVolumes", scc->flex_volumes.count},
                {"supplementalGroups.ranges", scc->supplemental_groups.ranges.count},
                {"fsGroup.ranges", scc->fs_group.ranges.count},
                {"runAsGroup.ranges", scc->run_as_group.ranges.count},
                {"users", scc->users.count},
                {"groups", scc->groups.count},
                {"seccompProfiles", scc->seccomp_profiles.count},
                {"allowedUnsafeSysctls", scc->allowed_unsafe_sysctls.count},
                {"forbiddenSysctls", scc->forbidden_sysctls.count},
                {"allowedAppArmorProfiles", scc->allowed_apparmor.count},
                {"allowedProcMountTypes", scc->allowed_proc_mounts.count},
        };

        for (size_t i = 0; i < nd_count_of(lists); i++)
                nd_try(check_list(lists[i].name, lists[i].count));
        return nullptr;
}

struct nd_error *nd_scc_decode(yyjson_val *value, struct nd_arena *arena, struct nd_scc *ret) {
        struct nd_scc scc = {};

        nd_try(nd_shape_decode(&nd_scc_shape, value, arena, &scc));
        nd_try(check_lists(&scc));
        nd_scc_default(&scc, arena);
        *ret = scc;
        return nullptr;
}

const char *nd_scc_volume_type(enum nd_pod_volume_source source) {
        switch (source) {
        case ND_VOLUME_CEPHFS:
                return "cephFS";
        case ND_VOLUME_VSPHERE_VOLUME:
                return "vsphere";
        case ND_VOLUME_STORAGEOS:
                return "storageOS";
        default:
                return nd_pod_volume_source_names[source];
        }
}

static int compare_texts(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void sort_texts(struct nd_shape_texts *texts) {
        if (texts->count > 1)
                qsort(texts->items, texts->count, sizeof *texts->items, compare_texts);
}

static void push_text(struct nd_shape_texts *texts, const char *text) {
        if (!nd_shape_texts_have(texts, text))
                texts->items[texts->count++] = text;
}

/* allowHostDirVolumePlugin overrides the list: it adds hostPath, or removes it and the wildcard. */
static struct nd_shape_texts volumes_with_host_dir(const struct nd_scc *scc, struct nd_arena *arena) {
        struct nd_shape_texts volumes = {
                .items = nd_arena_alloc(arena, scc->volumes.count + ND_VOLUME_SOURCES + 2, sizeof(char *))};
        bool all = nd_shape_texts_have(&scc->volumes, "*");

        for (size_t i = 0; i < scc->volumes.count; i++) {
                const char *type = scc->volumes.items[i];

                if (scc->allow_host_dir || (!nd_streq(type, "*") && !nd_streq(type, "hostPath")))
                        push_text(&volumes, type);
        }
        if (scc->allow_host_dir && !all)
                push_text(&volumes, "hostPath");
        for (enum nd_pod_volume_source source = 0; all && !scc->allow_host_dir && source < ND_VOLUME_SOURCES; source++)
                if (source != ND_VOLUME_HOST_PATH)
                        push_text(&volumes, nd_scc_volume_type(source));
        sort_texts(&volumes);
        return volumes;
}

void nd_scc_default(struct nd_scc *scc, struct nd_arena *arena) {
        if (nd_kube_or_empty(scc->fs_group.type)[0] == '\0')
                scc->fs_group.type = "RunAsAny";
        if (nd_kube_or_empty(scc->supplemental_groups.type)[0] == '\0')
                scc->supplemental_groups.type = "RunAsAny";
        if (nd_kube_or_empty(scc->user_namespace_level)[0] == '\0')
                scc->user_namespace_level = "AllowHostLevel";
        if (scc->allow_privilege_escalation == ND_UNSET)
                scc->allow_privilege_escalation = ND_ON;
        if (!scc->volumes.items) { /* null means all, from the time before the list existed */
                scc->volumes.items = nd_arena_alloc(arena, 1, sizeof *scc->volumes.items);
                scc->volumes.items[scc->volumes.count++] = "*";
        } else if (scc->volumes.count == 0) {
                scc->volumes.items = nd_arena_alloc(arena, 1, sizeof *scc->volumes.items);
                scc->volumes.items[scc->volumes.count++] = scc->allow_host_dir ? "hostPath" : "none";
        }
        scc->volumes = volumes_with_host_dir(scc, arena);
}

bool nd_scc_requires_user_namespace(const struct nd_scc *scc) {
        return scc->user_namespace_level && nd_streq(scc->user_namespace_level, "RequirePodLevel");
}

bool nd_scc_allows_volume(const struct nd_scc *scc, const char *type) {
        return nd_shape_texts_have(&scc->volumes, "*") || nd_shape_texts_have(&scc->volumes, type);
}

struct nd_scc_namespace nd_scc_namespace_of(const struct nd_shape_pairs *annotations) {
        return (struct nd_scc_namespace) {
                .uid_range = nd_shape_pairs_get(annotations, ND_SCC_ANNOTATION_UIDS),
                .supplemental_groups = nd_shape_pairs_get(annotations, ND_SCC_ANNOTATION_GROUPS),
                .mcs = nd_shape_pairs_get(annotations, ND_SCC_ANNOTATION_MCS),
        };
}

struct nd_error *nd_scc_block_parse(const char *text, struct nd_scc_id_pair *ret) {
        const char *separator = strpbrk(text, "/-");
        nd_autofree char *first_text = nullptr;
        uint32_t first, second;
        uint64_t last;

        if (!separator)
                return nd_error_new(ND_INVALID, 0, "invalid block '%.100s': expected first/count or first-last", text);
        first_text = nd_strndup(text, (size_t) (separator - text));
        if (nd_text_parse_u32(first_text, &first) < 0 || nd_text_parse_u32(separator + 1, &second) < 0)
                return nd_error_new(ND_INVALID, 0, "invalid block '%.100s': both numbers must be 32-bit integers", text);
        last = *separator == '-' ? second : (uint64_t) first + second - 1;
        if ((*separator == '/' && second == 0) || last < first || last > UINT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid block '%.100s': it is empty or exceeds 32 bits", text);
        *ret = (struct nd_scc_id_pair) {.min = ND_INT(first), .max = ND_INT((int64_t) last)};
        return nullptr;
}

static struct nd_error *missing(const char *annotation) {
        return nd_error_new(ND_PRECONDITION, 0, "unable to find annotation %s", annotation);
}

static struct nd_error *bind_user(const struct nd_scc_namespace *namespace, struct nd_scc_user *user) {
        struct nd_scc_id_pair block;

        if (nd_streq(nd_kube_or_empty(user->type), "MustRunAs") && !user->uid.set)
                return nd_error_new(ND_INVALID, 0, "MustRunAs requires a UID");
        if (!nd_streq(nd_kube_or_empty(user->type), "MustRunAsRange") || (user->min.set && user->max.set))
                return nullptr;
        if (user->min.set != user->max.set)
                return nd_error_new(ND_INVALID, 0, "MustRunAsRange requires a %s",
                                    user->min.set ? "UIDRangeMax" : "UIDRangeMin");
        if (!namespace->uid_range)
                return missing(ND_SCC_ANNOTATION_UIDS);
        nd_try(nd_error_wrap(nd_scc_block_parse(namespace->uid_range, &block), "annotation %s", ND_SCC_ANNOTATION_UIDS));
        user->min = block.min;
        user->max = block.max;
        return nullptr;
}

static struct nd_error *bind_selinux(const struct nd_scc_namespace *namespace, struct nd_arena *arena,
                                     struct nd_scc_selinux *selinux) {
        struct nd_pod_selinux *options;

        if (!nd_streq(nd_kube_or_empty(selinux->type), "MustRunAs"))
                return nullptr;
        if (selinux->options && nd_kube_or_empty(selinux->options->level)[0] != '\0')
                return nullptr;
        if (!namespace->mcs)
                return missing(ND_SCC_ANNOTATION_MCS);
        options = nd_arena_new(arena, struct nd_pod_selinux);
        if (selinux->options)
                *options = *selinux->options;
        options->level = namespace->mcs;
        selinux->options = options;
        return nullptr;
}

/* Returns the blocks of the annotation; for fsGroup the first ID of the first one. */
static struct nd_error *bind_groups(const struct nd_scc_namespace *namespace, struct nd_arena *arena, bool single,
                                    struct nd_scc_groups *groups) {
        const char *text = namespace->supplemental_groups ? namespace->supplemental_groups : namespace->uid_range;
        nd_autofree char *copy = nullptr;
        char *rest;
        size_t count = 1;

        if (!groups->type || !nd_streq(groups->type, "MustRunAs") || groups->ranges.count > 0)
                return nullptr;
        if (!text)
                return missing(ND_SCC_ANNOTATION_UIDS);
        if (text[0] == '\0')
                return nd_error_new(ND_PRECONDITION, 0, "unable to find groups using %s and %s annotations",
                                    ND_SCC_ANNOTATION_GROUPS, ND_SCC_ANNOTATION_UIDS);
        for (const char *c = text; (c = strchr(c, ',')); c++)
                count++;
        nd_try(check_list(ND_SCC_ANNOTATION_GROUPS, count));
        groups->ranges.items = nd_arena_alloc(arena, count, sizeof *groups->ranges.items);
        copy = nd_strdup(text);
        rest = copy;
        for (char *block; (block = strsep(&rest, ","));)
                nd_try(nd_error_wrap(nd_scc_block_parse(block, &groups->ranges.items[groups->ranges.count++]), "annotation %s",
                                     ND_SCC_ANNOTATION_GROUPS));
        if (single) {
                groups->ranges.count = 1;
                groups->ranges.items[0].max = groups->ranges.items[0].min;
        }
        return nullptr;
}

struct nd_error *nd_scc_bind(const struct nd_scc *scc, const struct nd_scc_namespace *namespace, struct nd_arena *arena,
                             struct nd_scc *ret) {
        struct nd_scc bound = *scc;

        nd_try(bind_user(namespace, &bound.user));
        nd_try(bind_selinux(namespace, arena, &bound.selinux));
        nd_try(bind_groups(namespace, arena, true, &bound.fs_group));
        nd_try(bind_groups(namespace, arena, false, &bound.supplemental_groups));
        nd_try(bind_groups(namespace, arena, false, &bound.run_as_group));
        *ret = bound;
        return nullptr;
}
