/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/standards.h"

static const struct nd_podsecurity_rule privileged = {.level = ND_LEVEL_PRIVILEGED, .version = ND_POLICY_LATEST};

void guard_standards_init(struct guard_standards *ret) {
        *ret = (struct guard_standards) {.prefix = GUARD_STANDARDS_PREFIX, .defaults = {privileged, privileged, privileged}};
}

void guard_standards_done(struct guard_standards *standards) {
        nd_strings_done(&standards->users);
        nd_strings_done(&standards->namespaces);
        nd_strings_done(&standards->runtime_classes);
        *standards = (struct guard_standards) {};
}

static struct nd_error *read_labels(yyjson_val *value, struct guard_standards *standards) {
        if (yyjson_equals_str(value, "own"))
                standards->prefix = GUARD_STANDARDS_PREFIX;
        else if (yyjson_equals_str(value, "standard"))
                standards->prefix = ND_PODSECURITY_PREFIX;
        else if (yyjson_equals_str(value, "off"))
                standards->prefix = nullptr;
        else
                return nd_error_new(ND_INVALID, 0, "podSecurity.labels must be own, standard or off");
        return nullptr;
}

static struct nd_error *read_default(const char *key, const char *text, struct nd_podsecurity_policy *policy) {
        const struct {
                const char *name, *version;
                struct nd_podsecurity_rule *rule;
        } modes[] = {
                {"enforce", "enforce-version", &policy->enforce},
                {"audit", "audit-version", &policy->audit},
                {"warn", "warn-version", &policy->warn},
        };

        for (size_t i = 0; i < nd_count_of(modes); i++) {
                if (nd_streq(key, modes[i].name) && nd_podsecurity_level_parse(text, &modes[i].rule->level) == 0)
                        return nullptr;
                if (nd_streq(key, modes[i].version) && nd_kube_version_parse(text, &modes[i].rule->version) == 0)
                        return nullptr;
        }
        return nd_error_new(ND_INVALID, 0,
                            "podSecurity.defaults: '%s: %s' is neither a level (enforce, audit, warn: privileged, baseline or "
                            "restricted) nor a version (enforce-version and so on: latest or v1.x)",
                            key, text);
}

static struct nd_error *read_names(const char *key, yyjson_val *value, struct nd_strings *list) {
        yyjson_arr_iter items = yyjson_arr_iter_with(value);
        yyjson_val *item;

        if (!yyjson_is_arr(value))
                return nd_error_new(ND_INVALID, 0, "podSecurity.exemptions.%s must be a list of names", key);
        while ((item = yyjson_arr_iter_next(&items))) {
                if (!yyjson_is_str(item) || yyjson_get_len(item) == 0)
                        return nd_error_new(ND_INVALID, 0, "podSecurity.exemptions.%s must be a list of names", key);
                nd_strings_add(list, yyjson_get_str(item));
        }
        return nullptr;
}

static struct nd_error *read_exemption(const char *key, yyjson_val *value, struct guard_standards *standards) {
        if (nd_streq(key, "usernames"))
                return read_names(key, value, &standards->users);
        if (nd_streq(key, "namespaces"))
                return read_names(key, value, &standards->namespaces);
        if (nd_streq(key, "runtimeClasses"))
                return read_names(key, value, &standards->runtime_classes);
        return nd_error_new(ND_INVALID, 0,
                            "unknown key podSecurity.exemptions.%s; use usernames, namespaces or runtimeClasses", key);
}

static struct nd_error *read_member(const char *key, yyjson_val *value, struct guard_standards *standards) {
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        bool defaults = nd_streq(key, "defaults");
        yyjson_val *name;

        if (nd_streq(key, "labels"))
                return read_labels(value, standards);
        if (!defaults && !nd_streq(key, "exemptions"))
                return nd_error_new(ND_INVALID, 0, "unknown key podSecurity.%s; use labels, defaults or exemptions", key);
        if (!yyjson_is_obj(value))
                return nd_error_new(ND_INVALID, 0, "podSecurity.%s must be a mapping", key);
        while ((name = yyjson_obj_iter_next(&members))) {
                yyjson_val *of_name = yyjson_obj_iter_get_val(name);

                if (!defaults)
                        nd_try(read_exemption(nd_kube_or_empty(yyjson_get_str(name)), of_name, standards));
                else
                        nd_try(read_default(nd_kube_or_empty(yyjson_get_str(name)),
                                            yyjson_is_str(of_name) ? yyjson_get_str(of_name) : "", &standards->defaults));
        }
        return nullptr;
}

struct nd_error *guard_standards_read(struct guard_standards *standards, yyjson_val *value) {
        yyjson_obj_iter members = yyjson_obj_iter_with(value);
        yyjson_val *name;

        if (!yyjson_is_obj(value))
                return nd_error_new(ND_INVALID, 0, "podSecurity must be a mapping");
        while ((name = yyjson_obj_iter_next(&members)))
                nd_try(read_member(nd_kube_or_empty(yyjson_get_str(name)), yyjson_obj_iter_get_val(name), standards));
        return nullptr;
}

bool guard_standards_are_privileged(const struct nd_podsecurity_policy *policy) {
        return policy->enforce.level == ND_LEVEL_PRIVILEGED && policy->audit.level == ND_LEVEL_PRIVILEGED &&
               policy->warn.level == ND_LEVEL_PRIVILEGED;
}

bool guard_standards_exempt(const struct nd_strings *exempt, const char *name) {
        return *nd_kube_or_empty(name) != '\0' && nd_strings_have(exempt, name);
}

bool guard_standards_exempt_class(const struct guard_standards *standards, const char *runtime_class) {
        return guard_standards_exempt(&standards->runtime_classes, runtime_class);
}

const char *guard_standards_rule(const struct nd_podsecurity_rule *rule, struct nd_arena *arena) {
        nd_autofree char *version = nd_kube_version_text(rule->version);

        return nd_arena_format(arena, "%s:%s", nd_podsecurity_level_name(rule->level), version);
}
