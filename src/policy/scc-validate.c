/* SPDX-License-Identifier: Apache-2.0 */
/* scc-validate.c - validation of a constraint */
#include <string.h>

#include "policy/scc.h"

enum {
        SYSCTL_LENGTH = 253,
};

static bool is_one_of(const char *type, const char *const *types, size_t count) {
        for (size_t i = 0; i < count; i++)
                if (nd_streq(nd_kube_or_empty(type), types[i]))
                        return true;
        return false;
}

static void validate_priority(const struct nd_scc *scc, struct nd_field_errors *errors) {
        if (scc->priority.set && scc->priority.value < 0)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, scc->priority.value),
                             "priority cannot be negative", "priority");
}

static void validate_user(const struct nd_scc_user *user, struct nd_field_errors *errors) {
        static const char *const types[] = {"MustRunAs", "MustRunAsNonRoot", "MustRunAsRange", "RunAsAny"};
        bool range = nd_streq(nd_kube_or_empty(user->type), "MustRunAsRange");

        if (!is_one_of(user->type, types, nd_count_of(types)))
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_json(errors->arena, nd_kube_or_empty(user->type)),
                             "invalid strategy type.  Valid values are MustRunAs, MustRunAsNonRoot, MustRunAsRange, RunAsAny",
                             "runAsUser.type");
        if (user->uid.set && user->uid.value < 0)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, user->uid.value), "uid cannot be negative",
                             "runAsUser.uid");
        if (nd_streq(nd_kube_or_empty(user->type), "MustRunAs") && !user->uid.set)
                nd_field_add(errors, ND_FIELD_REQUIRED, nullptr, "MustRunAs requires a UID", "runAsUser.uid");
        if (range && user->min.set != user->max.set)
                nd_field_add(errors, ND_FIELD_REQUIRED, nullptr, "MustRunAsRange takes both ends of the range, or none",
                             user->min.set ? "runAsUser.uidRangeMax" : "runAsUser.uidRangeMin");
        if (user->min.set && user->min.value < 0)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, user->min.value), "min cannot be negative",
                             "runAsUser.uidRangeMin");
        if (user->min.set && user->max.set && user->min.value > user->max.value)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, user->min.value),
                             "min cannot be greater than max", "runAsUser.uidRangeMin");
}

static void validate_selinux(const struct nd_scc_selinux *selinux, struct nd_field_errors *errors) {
        static const char *const types[] = {"MustRunAs", "RunAsAny"};

        if (!is_one_of(selinux->type, types, nd_count_of(types)))
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_json(errors->arena, nd_kube_or_empty(selinux->type)),
                             "invalid strategy type.  Valid values are MustRunAs, RunAsAny", "seLinuxContext.type");
}

static void validate_range(const struct nd_scc_id_pair *range, const char *field, size_t number,
                           struct nd_field_errors *errors) {
        if (range->min.value < 0)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, range->min.value), "min cannot be negative",
                             "%s.ranges[%zu].min", field, number);
        if (range->max.value < 0)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, range->max.value), "max cannot be negative",
                             "%s.ranges[%zu].max", field, number);
        if (range->min.value > range->max.value)
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_int(errors->arena, range->min.value),
                             "min cannot be greater than max", "%s.ranges[%zu].min", field, number);
}

static void validate_groups(const struct nd_scc_groups *groups, const char *field, struct nd_field_errors *errors) {
        static const char *const types[] = {"MustRunAs", "RunAsAny"};

        if (!is_one_of(groups->type, types, nd_count_of(types)))
                nd_field_add(errors, ND_FIELD_NOT_SUPPORTED, nd_field_json(errors->arena, nd_kube_or_empty(groups->type)),
                             "supported values: \"MustRunAs\", \"RunAsAny\"", "%s.type", field);
        for (size_t i = 0; i < groups->ranges.count; i++)
                validate_range(&groups->ranges.items[i], field, i, errors);
}

static void validate_dropped(const struct nd_shape_texts *capabilities, const struct nd_shape_texts *dropped,
                             const char *field, struct nd_field_errors *errors) {
        for (size_t i = 0; i < capabilities->count; i++)
                if (nd_shape_texts_have(dropped, capabilities->items[i]))
                        nd_field_add(errors, ND_FIELD_INVALID, nd_field_json(errors->arena, capabilities->items[i]),
                                     nd_arena_format(errors->arena, "capability is listed in %s and requiredDropCapabilities",
                                                     field),
                                     "%s", field);
}

static void validate_capabilities(const struct nd_scc *scc, struct nd_field_errors *errors) {
        if (scc->required_drop.count > 0 && nd_shape_texts_have(&scc->allowed_capabilities, "*"))
                nd_field_add(errors, ND_FIELD_INVALID, nd_field_json(errors->arena, scc->required_drop.items[0]),
                             "required capabilities must be empty when all capabilities are allowed by a wildcard",
                             "requiredDropCapabilities");
        validate_dropped(&scc->default_add, &scc->required_drop, "defaultAddCapabilities", errors);
        validate_dropped(&scc->allowed_capabilities, &scc->required_drop, "allowedCapabilities", errors);
}

static bool volume_type_exists(const char *type) {
        if (nd_streq(type, "*") || nd_streq(type, "none") || nd_streq(type, "serviceAccountToken"))
                return true;
        for (enum nd_pod_volume_source source = 0; source < ND_VOLUME_SOURCES; source++)
                if (nd_streq(type, nd_scc_volume_type(source)))
                        return true;
        return false;
}

static void validate_volumes(const struct nd_scc *scc, struct nd_field_errors *errors) {
        for (size_t i = 0; i < scc->volumes.count; i++)
                if (!volume_type_exists(scc->volumes.items[i]))
                        nd_field_add(errors, ND_FIELD_INVALID, nd_field_json(errors->arena, scc->volumes.items[i]),
                                     "unknown volume type", "volumes[%zu]", i);
        if (scc->volumes.count > 1 && nd_shape_texts_have(&scc->volumes, "none"))
                nd_field_add(errors, ND_FIELD_INVALID, "\"none\"", "if 'none' is specified, no other values are allowed",
                             "volumes");
        for (size_t i = 0; i < scc->flex_volumes.count; i++)
                if (nd_kube_or_empty(scc->flex_volumes.items[i].driver)[0] == '\0')
                        nd_field_add(errors, ND_FIELD_REQUIRED, nullptr, "must specify a driver",
                                     "allowedFlexVolumes[%zu].driver", i);
        if (scc->flex_volumes.count > 0 && !nd_scc_allows_volume(scc, "flexVolume"))
                nd_field_add(errors, ND_FIELD_INVALID, "\"\"",
                             "volumes does not include 'flexVolume' or '*', so no flex volumes are allowed",
                             "allowedFlexVolumes");
}

/* Segments of letters, digits, - and _ joined by dots or slashes; a '*' may end the pattern. */
static bool sysctl_pattern_is_valid(const char *pattern) {
        static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789-_", outer[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        size_t length = strlen(pattern);
        bool open = true; /* a segment must begin here */

        if (length == 0 || length > SYSCTL_LENGTH)
                return false;
        for (size_t i = 0; i < length; i++) {
                bool last = i + 1 == length;

                if (pattern[i] == '*')
                        return last;
                if (pattern[i] == '.' || pattern[i] == '/') {
                        if (open || last || !strchr(outer, pattern[i - 1]))
                                return false;
                        open = true;
                } else {
                        if (!strchr(open || last ? outer : inner, pattern[i]))
                                return false;
                        open = false;
                }
        }
        return true;
}

static void validate_sysctls(const struct nd_shape_texts *patterns, const char *field, struct nd_field_errors *errors) {
        for (size_t i = 0; i < patterns->count; i++) {
                const char *pattern = patterns->items[i];

                if (pattern[0] == '\0')
                        nd_field_add(errors, ND_FIELD_INVALID, "\"\"", "empty sysctl not allowed", "%s[%zu]", field, i);
                else if (!sysctl_pattern_is_valid(pattern))
                        nd_field_add(errors, ND_FIELD_INVALID, nd_field_text(errors->arena, pattern),
                                     "must be the name of a sysctl of at most 253 characters, which may end with '*'",
                                     "%s[%zu]", field, i);
                else if (pattern[0] == '*' && patterns->count > 1)
                        nd_field_add(errors, ND_FIELD_FORBIDDEN, nullptr, "if '*' is present, must not specify other sysctls",
                                     "%s[%zu]", field, i);
        }
}

static bool pattern_covers(const char *pattern, const char *other) {
        size_t length = strlen(pattern);

        if (length > 0 && pattern[length - 1] == '*')
                return strncmp(pattern, other, length - 1) == 0;
        return nd_streq(pattern, other);
}

static void validate_overlaps(const struct nd_scc *scc, struct nd_field_errors *errors) {
        const struct nd_shape_texts *allowed = &scc->allowed_unsafe_sysctls, *forbidden = &scc->forbidden_sysctls;

        for (size_t i = 0; i < allowed->count; i++)
                for (size_t j = 0; j < forbidden->count; j++)
                        if (pattern_covers(allowed->items[i], forbidden->items[j]) ||
                            pattern_covers(forbidden->items[j], allowed->items[i]))
                                nd_field_add(errors, ND_FIELD_INVALID, nd_field_text(errors->arena, allowed->items[i]),
                                             nd_arena_format(errors->arena, "sysctl overlaps with %s", forbidden->items[j]),
                                             "allowedUnsafeSysctls[%zu]", i);
}

static bool apparmor_profile_exists(const char *profile) {
        return nd_streq(profile, "*") || nd_streq(profile, "runtime/default") || nd_streq(profile, "unconfined") ||
               (nd_has_prefix(profile, "localhost/") && profile[strlen("localhost/")] != '\0');
}

static void validate_apparmor(const struct nd_shape_texts *profiles, struct nd_field_errors *errors) {
        for (size_t i = 0; i < profiles->count; i++)
                if (!apparmor_profile_exists(profiles->items[i]))
                        nd_field_add(
                                errors, ND_FIELD_INVALID, nd_field_text(errors->arena, profiles->items[i]),
                                "must be *, runtime/default, unconfined or localhost/ with a name, which may end with '*'",
                                "allowedAppArmorProfiles[%zu]", i);
}

void nd_scc_validate(const struct nd_scc *scc, struct nd_field_errors *errors) {
        static const char *const levels[] = {"AllowHostLevel", "RequirePodLevel"};

        validate_priority(scc, errors);
        validate_user(&scc->user, errors);
        validate_selinux(&scc->selinux, errors);
        validate_groups(&scc->fs_group, "fsGroup", errors);
        validate_groups(&scc->supplemental_groups, "supplementalGroups", errors);
        if (scc->run_as_group.type)
                validate_groups(&scc->run_as_group, "runAsGroup", errors);
        validate_capabilities(scc, errors);
        if (scc->default_allow_privilege_escalation == ND_ON && scc->allow_privilege_escalation == ND_OFF)
                nd_field_add(
                        errors, ND_FIELD_INVALID, "true",
                        "Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true",
                        "defaultAllowPrivilegeEscalation");
        if (!is_one_of(scc->user_namespace_level, levels, nd_count_of(levels)))
                nd_field_add(errors, ND_FIELD_NOT_SUPPORTED,
                             nd_field_json(errors->arena, nd_kube_or_empty(scc->user_namespace_level)),
                             "supported values: \"AllowHostLevel\", \"RequirePodLevel\"", "userNamespaceLevel");
        validate_volumes(scc, errors);
        validate_apparmor(&scc->allowed_apparmor, errors);
        validate_sysctls(&scc->allowed_unsafe_sysctls, "allowedUnsafeSysctls", errors);
        validate_sysctls(&scc->forbidden_sysctls, "forbiddenSysctls", errors);
        validate_overlaps(scc, errors);
}
