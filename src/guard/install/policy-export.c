/* SPDX-License-Identifier: Apache-2.0 */
/* policy-export.c - see policy-export.h
 *
 * One variable of the policy says whether the pod fits a constraint (fits_NAME), one whether the
 * user or the pod's service account may use it (may_NAME); the pod is admitted if both hold for one
 * constraint. An API server evaluates a variable when it is used first, and an access check costs
 * 350,000 of the 10,000,000 units that a policy has: fits_NAME is asked first. */
#include "guard/install/policy-export.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "guard/install/install-manifest.h"
#include "policy/scc.h"

enum {
        EXPRESSION_BYTES = 16 << 10,
        INDENT = 2,
};

#define REGISTRATION "admissionregistration.k8s.io/v1"
#define VALIDATING "ValidatingAdmissionPolicy"
#define MUTATING "MutatingAdmissionPolicy"
/* as nd_hostusers_obstacle() */
#define POSSIBLE                                                                                                              \
        "object.spec.?os.?name.orValue('') != 'windows' && !object.spec.?hostPID.orValue(false) && "                          \
        "!object.spec.?hostIPC.orValue(false) && !(object.spec.containers + " OPTIONAL_LIST(                                  \
                "initContainers") ").exists(c, c.?volumeDevices.orValue([]).size() > 0)"
#define CONTEXT "c.?securityContext"
#define POD_CONTEXT "object.spec.?securityContext"
#define APPARMOR "container.apparmor.security.beta.kubernetes.io/"
#define OPTIONAL_LIST(name) "(has(object.spec." name ") ? object.spec." name " : [])"
#define USER_OF_C CONTEXT ".?runAsUser.orValue(variables.podUser)"
#define ANNOTATION(name) "namespaceObject.metadata.?annotations['" name "'].orValue('')"

const char *const guard_export_part_names[] = {
        [GUARD_EXPORT_CONSTRAINTS] = "constraints",
        [GUARD_EXPORT_USER_NAMESPACES] = "user-namespaces",
};
static_assert(nd_count_of(guard_export_part_names) == GUARD_EXPORT_PARTS);

struct variable {
        const char *name, *expression;
};

/* What constraints compare. */
static const struct variable common[] = {
        {"containers", "object.spec.containers + " OPTIONAL_LIST("initContainers") " + " OPTIONAL_LIST("ephemeralContainers")},
        {"account", "object.spec.?serviceAccountName.orValue('default')"},
        {"userNamespace", "!object.spec.?hostUsers.orValue(true)"},
        {"windows", "object.spec.?os.?name.orValue('') == 'windows'"},
        {"privileged",
         "variables.containers.exists(c, " CONTEXT ".?privileged.orValue(false) || " CONTEXT
         ".?windowsOptions.?hostProcess.orValue(false)) || " POD_CONTEXT ".?windowsOptions.?hostProcess.orValue(false)"},
        {"hostPorts", "variables.containers.exists(c, c.?ports.orValue([]).exists(p, p.?hostPort.orValue(0) != 0))"},
        {"podUser", POD_CONTEXT ".?runAsUser.orValue(-1)"},
        {"podSeccomp", POD_CONTEXT ".?seccompProfile.?type.orValue('')"},
        {"selinux",
         "(has(object.spec.securityContext) && has(object.spec.securityContext.seLinuxOptions) ? "
         "[object.spec.securityContext.seLinuxOptions] : []) + variables.containers.filter(c, has(c.securityContext) && "
         "has(c.securityContext.seLinuxOptions)).map(c, c.securityContext.seLinuxOptions)"},
        {"uids", ANNOTATION(ND_SCC_ANNOTATION_UIDS)},
        {"uidRange", "variables.uids.matches('^[0-9]{1,10}/[0-9]{1,10}$') ? [int(variables.uids.split('/')[0]), "
                     "int(variables.uids.split('/')[0]) + int(variables.uids.split('/')[1]) - 1] : [1, 0]"},
        {"groups", ANNOTATION(ND_SCC_ANNOTATION_GROUPS)},
        {"groupRange", "variables.groups.matches('^[0-9]{1,10}/[0-9]{1,10}$') ? [int(variables.groups.split('/')[0]), "
                       "int(variables.groups.split('/')[0]) + int(variables.groups.split('/')[1]) - 1] : variables.uidRange"},
        {"mcs", ANNOTATION(ND_SCC_ANNOTATION_MCS)},
        {"fsGroup", POD_CONTEXT ".?fsGroup.orValue(-1)"},
        {"supplementalGroups", POD_CONTEXT ".?supplementalGroups.orValue([])"},
        {"apparmorIsDefault", POD_CONTEXT ".?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault'"
                                          " && variables.containers.all(c, " CONTEXT
                                          ".?appArmorProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault')"
                                          " && object.metadata.?annotations.orValue({}).all(k, !k.startsWith('" APPARMOR
                                          "') || object.metadata.annotations[k] in ['', 'runtime/default'])"},
        /* IDs above 65535 do not exist in a pod's user namespace */
        {"idsExist",
         "!variables.userNamespace || (variables.podUser < 65536 && variables.fsGroup < 65536 && " POD_CONTEXT
         ".?runAsGroup.orValue(0) < 65536 && variables.supplementalGroups.all(g, g < 65536) && variables.containers.all(c, " CONTEXT
         ".?runAsUser.orValue(0) < 65536 && " CONTEXT ".?runAsGroup.orValue(0) < 65536))"},
};

/* ---- one constraint ---- */

static void add(struct nd_text *text, const char *condition) {
        nd_text_addf(text, "%s%s", text->length > 0 ? "\n&& " : "", condition);
}

[[gnu::format(printf, 2, 3)]] static void addf(struct nd_text *text, const char *format, ...) {
        va_list arguments;
        char *condition = nullptr;

        va_start(arguments, format);
        if (vasprintf(&condition, format, arguments) < 0)
                abort(); /* out of memory, as everywhere */
        va_end(arguments);
        add(text, condition);
        free(condition);
}

/* "['a', 'b']"; the items are words of ours. */
static char *list_of(const struct nd_shape_texts *texts) {
        nd_autotext struct nd_text text = ND_TEXT(EXPRESSION_BYTES);

        nd_text_add(&text, "[");
        for (size_t i = 0; i < texts->count; i++)
                nd_text_addf(&text, "%s'%s'", i > 0 ? ", " : "", texts->items[i]);
        nd_text_add(&text, "]");
        return nd_strdup(nd_text_get(&text));
}

static void add_host(const struct nd_scc *scc, struct nd_text *text) {
        if (nd_scc_requires_user_namespace(scc))
                add(text, "variables.userNamespace");
        if (!scc->allow_privileged)
                add(text, "!variables.privileged");
        if (!scc->allow_host_network)
                add(text, "!object.spec.?hostNetwork.orValue(false)");
        if (!scc->allow_host_pid)
                add(text, "!object.spec.?hostPID.orValue(false)");
        if (!scc->allow_host_ipc)
                add(text, "!object.spec.?hostIPC.orValue(false)");
        if (!scc->allow_host_ports)
                add(text, "!variables.hostPorts");
}

static void add_volumes(const struct nd_scc *scc, struct nd_text *text) {
        nd_autotext struct nd_text types = ND_TEXT(EXPRESSION_BYTES);

        if (nd_shape_texts_have(&scc->volumes, "*"))
                return;
        for (size_t i = 0; i < scc->volumes.count; i++)
                nd_text_addf(&types, "%shas(v.%s)", i > 0 ? " || " : "", scc->volumes.items[i]);
        addf(text, "object.spec.?volumes.orValue([]).all(v, %s)", nd_text_get(&types));
}

static void add_capabilities(const struct nd_scc *scc, struct nd_text *text) {
        nd_autofree char *allowed = list_of(&scc->allowed_capabilities), *dropped = list_of(&scc->required_drop);

        if (!nd_shape_texts_have(&scc->allowed_capabilities, "*"))
                addf(text, "variables.containers.all(c, " CONTEXT ".?capabilities.?add.orValue([]).all(x, x in %s))", allowed);
        if (scc->required_drop.count > 0)
                addf(text,
                     "variables.containers.all(c, 'ALL' in " CONTEXT
                     ".?capabilities.?drop.orValue([]) || %s.all(x, x in " CONTEXT ".?capabilities.?drop.orValue([])))",
                     dropped);
        if (scc->allow_privilege_escalation == ND_OFF)
                add(text, "variables.containers.all(c, !" CONTEXT ".?allowPrivilegeEscalation.orValue(true))");
}

static void add_user(const struct nd_scc *scc, struct nd_text *text) {
        const struct nd_scc_user *user = &scc->user;

        add(text, "variables.idsExist");
        if (nd_streq(user->type, "MustRunAsNonRoot"))
                add(text, "variables.containers.all(c, " USER_OF_C " != 0 && " CONTEXT ".?runAsNonRoot.orValue(" POD_CONTEXT
                          ".?runAsNonRoot.orValue(" USER_OF_C " > 0)))");
        else if (nd_streq(user->type, "MustRunAsRange") && user->min.set)
                addf(text, "variables.containers.all(c, " USER_OF_C " >= %" PRId64 " && " USER_OF_C " <= %" PRId64 ")",
                     user->min.value, user->max.value);
        else if (nd_streq(user->type, "MustRunAsRange"))
                add(text, "variables.containers.all(c, " USER_OF_C " >= variables.uidRange[0] && " USER_OF_C
                          " <= variables.uidRange[1])");
}

/* Groups that are not set are harmless without a default. */
static void add_groups(const struct nd_scc *scc, struct nd_text *text) {
        const struct nd_scc_groups *fs = &scc->fs_group, *more = &scc->supplemental_groups;

        if (nd_streq(fs->type, "MustRunAs") && fs->ranges.count > 0)
                addf(text,
                     "(variables.fsGroup == -1 || (variables.fsGroup >= %" PRId64 " && variables.fsGroup <= %" PRId64 "))",
                     fs->ranges.items[0].min.value, fs->ranges.items[0].max.value);
        else if (nd_streq(fs->type, "MustRunAs"))
                add(text, "(variables.fsGroup == -1 || variables.fsGroup == variables.groupRange[0])");
        if (nd_streq(more->type, "MustRunAs") && more->ranges.count > 0)
                addf(text, "variables.supplementalGroups.all(g, g >= %" PRId64 " && g <= %" PRId64 ")",
                     more->ranges.items[0].min.value, more->ranges.items[0].max.value);
        else if (nd_streq(more->type, "MustRunAs"))
                add(text, "variables.supplementalGroups.all(g, g >= variables.groupRange[0] && g <= variables.groupRange[1])");
}

static void add_selinux(const struct nd_scc *scc, struct nd_text *text) {
        const char *type = scc->selinux.options ? nd_kube_or_empty(scc->selinux.options->type) : "";

        if (nd_streq(scc->selinux.type, "MustRunAs"))
                addf(text,
                     "variables.selinux.all(o, o.?level.orValue('') == variables.mcs && o.?type.orValue('') == '%s' && "
                     "o.?role.orValue('') == '' && o.?user.orValue('') == '')",
                     type);
}

static void add_profiles(const struct nd_scc *scc, struct nd_text *text) {
        nd_autofree char *mounts = list_of(&scc->allowed_proc_mounts);

        if (scc->seccomp_profiles.count == 0)
                add(text,
                    "variables.podSeccomp == '' && variables.containers.all(c, !" CONTEXT ".?seccompProfile.hasValue())");
        else if (!nd_shape_texts_have(&scc->seccomp_profiles, "*"))
                add(text, "variables.podSeccomp in ['', 'RuntimeDefault'] && variables.containers.all(c, " CONTEXT
                          ".?seccompProfile.?type.orValue(variables.podSeccomp) == 'RuntimeDefault')");
        if (scc->allowed_apparmor.items)
                add(text, "variables.apparmorIsDefault");
        if (scc->allowed_proc_mounts.items)
                addf(text, "variables.containers.all(c, " CONTEXT ".?procMount.orValue('Default') in %s)", mounts);
}

static void add_sysctls(const struct nd_scc *scc, struct nd_text *text) {
        if (!nd_shape_texts_have(&scc->allowed_unsafe_sysctls, "*"))
                add(text, "variables.sysctlsAreSafe");
}

static char *fits(const struct nd_scc *scc) {
        nd_autotext struct nd_text text = ND_TEXT(EXPRESSION_BYTES);

        add(&text, "!variables.windows");
        add_host(scc, &text);
        add_volumes(scc, &text);
        add_capabilities(scc, &text);
        add_user(scc, &text);
        add_groups(scc, &text);
        add_selinux(scc, &text);
        add_profiles(scc, &text);
        add_sysctls(scc, &text);
        nd_text_add(&text, "\n");
        return nd_strdup(nd_text_get(&text));
}

static char *may_use(const struct nd_scc_default *one, const char *group) {
        nd_autofree char *users = list_of(&one->scc.users), *groups = list_of(&one->scc.groups);
        nd_autotext struct nd_text text = ND_TEXT(EXPRESSION_BYTES);
        nd_autofree char *check =
                nd_format("group('%s').resource('securitycontextconstraints').namespace(request.namespace).name('%s')"
                          ".check('use').allowed()",
                          group, one->scc.metadata.name);

        if (one->for_all_users)
                return nd_strdup("true");
        if (one->scc.users.count > 0)
                nd_text_addf(&text, "request.userInfo.username in %s\n|| ", users);
        if (one->scc.groups.count > 0)
                nd_text_addf(&text, "request.userInfo.?groups.orValue([]).exists(g, g in %s)\n|| ", groups);
        nd_text_addf(&text, "authorizer.%s\n|| authorizer.serviceAccount(request.namespace, variables.account).%s\n", check,
                     check);
        return nd_strdup(nd_text_get(&text));
}

/* ---- objects ---- */

/* "restricted-v2" as part of a name in CEL: "restricted_v2". */
static char *identifier(const char *prefix, const char *name) {
        char *text = nd_format("%s_%s", prefix, name);

        for (char *c = text; (c = strchr(c, '-'));)
                *c = '_';
        return text;
}

static void write_variable(struct nd_json_out *out, const char *name, const char *expression) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "name", name);
        nd_json_string(out, "expression", expression);
        nd_json_close(out, '}');
}

static void write_variables(struct nd_json_out *out, const char *group) {
        nd_autofree char *safe = list_of(&nd_scc_safe_sysctls);
        nd_autofree char *sysctls = nd_format(POD_CONTEXT ".?sysctls.orValue([]).all(s, s.name in %s)", safe);

        nd_json_open(out, "variables", '[');
        for (size_t i = 0; i < nd_count_of(common); i++)
                write_variable(out, common[i].name, common[i].expression);
        write_variable(out, "sysctlsAreSafe", sysctls);
        for (size_t i = 0; i < nd_scc_default_count; i++) {
                const struct nd_scc_default *one = &nd_scc_defaults[i];
                nd_autofree char *fit = identifier("fits", one->scc.metadata.name),
                                 *may = identifier("may", one->scc.metadata.name);
                nd_autofree char *fitting = fits(&one->scc), *allowed = may_use(one, group);

                write_variable(out, fit, fitting);
                write_variable(out, may, allowed);
        }
        nd_json_close(out, ']');
}

static char *verdict(void) {
        nd_autotext struct nd_text text = ND_TEXT(EXPRESSION_BYTES);

        for (size_t i = 0; i < nd_scc_default_count; i++) {
                const char *name = nd_scc_defaults[i].scc.metadata.name;
                nd_autofree char *fit = identifier("fits", name), *may = identifier("may", name);

                nd_text_addf(&text, "%s(variables.%s && variables.%s)", i > 0 ? "\n|| " : "", fit, may);
        }
        nd_text_add(&text, "\n");
        return nd_strdup(nd_text_get(&text));
}

static void write_texts(struct nd_json_out *out, const char *key, const char *const *texts) {
        nd_json_open(out, key, '[');
        for (; *texts; texts++)
                nd_json_string(out, nullptr, *texts);
        nd_json_close(out, ']');
}

/* An item of matchExpressions. */
static void write_requirement(struct nd_json_out *out, const char *key, const char *operator, const char * const * values) {
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "key", key);
        nd_json_string(out, "operator", operator);
        if (values)
                write_texts(out, "values", values);
        nd_json_close(out, '}');
}

static void open_object(struct nd_json_out *out, struct nd_text *text, const char *kind, const char *name) {
        if (text->length > 0)
                nd_text_add(text, "\n---\n");
        *out = (struct nd_json_out) {.text = text, .indent = INDENT};
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "apiVersion", REGISTRATION);
        nd_json_string(out, "kind", kind);
        nd_json_open(out, "metadata", '{');
        nd_json_string(out, "name", name);
        nd_json_close(out, '}');
        nd_json_open(out, "spec", '{');
}

static void close_object(struct nd_json_out *out) {
        nd_json_close(out, '}');
        nd_json_close(out, '}');
        nd_text_add(out->text, "\n");
}

static void write_rule(struct nd_json_out *out, const char *resource, const char *const *operations) {
        nd_json_open(out, nullptr, '{');
        write_texts(out, "apiGroups", (const char *const[]) {"", nullptr});
        write_texts(out, "apiVersions", (const char *const[]) {"v1", nullptr});
        write_texts(out, "operations", operations);
        write_texts(out, "resources", (const char *const[]) {resource, nullptr});
        nd_json_string(out, "scope", "Namespaced");
        nd_json_close(out, '}');
}

static void write_match(struct nd_json_out *out, const struct guard_export_settings *settings, bool creation_only) {
        static const char *const all[] = {"CREATE", "UPDATE", nullptr};

        nd_json_open(out, "matchConstraints", '{');
        nd_json_open(out, "namespaceSelector", '{');
        nd_json_open(out, "matchExpressions", '[');
        write_requirement(out, "kubernetes.io/metadata.name", "NotIn",
                          (const char *const[]) {"kube-system", settings->namespace, nullptr});
        nd_json_close(out, ']');
        nd_json_close(out, '}');
        nd_json_open(out, "resourceRules", '[');
        write_rule(out, "pods", creation_only ? (const char *const[]) {"CREATE", nullptr} : all);
        if (!creation_only)
                write_rule(out, "pods/ephemeralcontainers", (const char *const[]) {"UPDATE", nullptr});
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

static void write_conditions(struct nd_json_out *out, const struct variable *conditions) {
        nd_json_open(out, "matchConditions", '[');
        for (; conditions->name; conditions++)
                write_variable(out, conditions->name, conditions->expression);
        nd_json_close(out, ']');
}

static void write_validation(struct nd_json_out *out, const char *expression, const char *message, const char *dynamic) {
        nd_json_open(out, "validations", '[');
        nd_json_open(out, nullptr, '{');
        nd_json_string(out, "expression", expression);
        nd_json_string(out, "message", message);
        if (dynamic)
                nd_json_string(out, "messageExpression", dynamic);
        nd_json_string(out, "reason", "Forbidden");
        nd_json_close(out, '}');
        nd_json_close(out, ']');
}

/* A binding for namespaces with a label that has none of these values. */
static void write_binding(struct nd_text *text, const char *kind, const char *name, const char *label,
                          const char *const *other_values) {
        struct nd_json_out out;

        open_object(&out, text, kind, name);
        nd_json_string(&out, "policyName", name);
        nd_json_open(&out, "matchResources", '{');
        nd_json_open(&out, "namespaceSelector", '{');
        nd_json_open(&out, "matchExpressions", '[');
        write_requirement(&out, label, "Exists", nullptr);
        if (other_values)
                write_requirement(&out, label, "NotIn", other_values);
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        if (nd_streq(kind, VALIDATING "Binding"))
                write_texts(&out, "validationActions", (const char *const[]) {"Deny", nullptr});
        close_object(&out);
}

static void write_constraints(const struct guard_export_settings *settings, struct nd_text *text) {
        static const struct variable changes[] = {{"spec-or-annotations", GUARD_INSTALL_CHANGES}, {}};
        nd_autofree char *expression = verdict();
        struct nd_json_out out;

        open_object(&out, text, VALIDATING, "nodens-guard-constraints");
        nd_json_string(&out, "failurePolicy", "Fail");
        write_match(&out, settings, false);
        write_conditions(&out, changes);
        write_variables(&out, settings->group);
        write_validation(
                &out, expression, "the pod fits no security context constraint that its user or service account may use",
                "'the pod as it is written fits no security context constraint that ' + request.userInfo.username + ' or "
                "serviceaccount ' + request.namespace + ':' + variables.account + ' may use; `nodens lint` says what is missing'");
        close_object(&out);
        write_binding(text, VALIDATING "Binding", "nodens-guard-constraints", "security.nodens.io/constraints",
                      (const char *const[]) {"off", "warn", nullptr});
}

/* ---- user namespaces ---- */

static void write_required(const struct guard_export_settings *settings, struct nd_text *text) {
        struct nd_json_out out;

        open_object(&out, text, VALIDATING, "nodens-guard-require-user-namespaces");
        nd_json_string(&out, "failurePolicy", "Fail");
        write_match(&out, settings, true);
        write_validation(
                &out, "!object.spec.?hostUsers.orValue(true)",
                "spec.hostUsers must be false: the label security.nodens.io/user-namespaces of the namespace requires it",
                nullptr);
        close_object(&out);
        write_binding(text, VALIDATING "Binding", "nodens-guard-require-user-namespaces", "security.nodens.io/user-namespaces",
                      (const char *const[]) {"default", nullptr});
}

static void write_default(const struct guard_export_settings *settings, struct nd_text *text) {
        const struct variable conditions[] = {
                {"left-open", "!has(object.spec.hostUsers)"},
                {"possible", settings->host_network ? POSSIBLE : POSSIBLE " && !object.spec.?hostNetwork.orValue(false)"},
                {}};
        struct nd_json_out out;

        open_object(&out, text, MUTATING, "nodens-guard-user-namespaces");
        nd_json_string(&out, "failurePolicy", "Fail");
        nd_json_string(&out, "reinvocationPolicy", "IfNeeded");
        write_match(&out, settings, true);
        write_conditions(&out, conditions);
        nd_json_open(&out, "mutations", '[');
        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "patchType", "ApplyConfiguration");
        nd_json_open(&out, "applyConfiguration", '{');
        nd_json_string(&out, "expression", "Object{spec: Object.spec{hostUsers: false}}");
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_json_close(&out, ']');
        close_object(&out);
        write_binding(text, MUTATING "Binding", "nodens-guard-user-namespaces", "security.nodens.io/user-namespaces", nullptr);
}

void guard_export_write(enum guard_export_part part, const struct guard_export_settings *settings, struct nd_text *text) {
        if (part == GUARD_EXPORT_CONSTRAINTS) {
                write_constraints(settings, text);
                return;
        }
        write_default(settings, text);
        write_required(settings, text);
}
