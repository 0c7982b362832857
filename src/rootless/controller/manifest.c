/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/manifest.h"

#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "rootless/controller/objects.h"
#include "rootless/controller/settings.h"

enum { SYSCTLS_CEILING = 32 };

#define FIELD(name) offsetof(struct rootless_manifest_settings, name)

const struct nd_option rootless_manifest_options[] = {
        {.name = "namespace",
         .kind = ND_OPTION_TEXT,
         .offset = FIELD(namespace),
         .argument = "NAME",
         .help = "Namespace of the service accounts (default nodens-system)"},
        {.name = "node-name",
         .kind = ND_OPTION_TEXT,
         .offset = FIELD(node_name),
         .argument = "NAME",
         .help = "The only Node that the controller may patch; with --label own"},
        {.name = "user",
         .kind = ND_OPTION_TEXT,
         .offset = FIELD(user),
         .argument = "NAME",
         .help = "User that gets the rights of the controller besides its service account: the common name of a certificate"},
        {.name = "label",
         .kind = ND_OPTION_TEXT,
         .offset = FIELD(label),
         .argument = "NODES",
         .values = ND_VALUES_WORDS,
         .words = "all own none",
         .help = "Nodes that the controller labels, as its option of that name: all (the default), own or none"},
        {.name = "ingress",
         .kind = ND_OPTION_FLAG,
         .offset = FIELD(ingress),
         .help = "Include the right to change the status of Services, for --ingress-address of the controller"},
        {.name = "strip-sysctls",
         .kind = ND_OPTION_TEXT,
         .offset = FIELD(strip_sysctls),
         .argument = "NAME,...",
         .help = "Include a policy that removes these sysctls from pods that select nodes without root; 'net.core.*' is a prefix"},
        {},
};

/* Names are part of the YAML. */
static struct nd_error *check_name(const char *option, const char *name) {
        if (rootless_object_name_valid(name))
                return nullptr;
        return nd_error_new(ND_INVALID, 0, "--%s: invalid name '%.64s'", option, name);
}

static bool is_user(const char *name) {
        size_t length = strlen(name);

        return length > 0 && length < CLUSTER_NAME_TEXT &&
               strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@") == length;
}

static struct nd_error *check(const struct rootless_manifest_settings *s, enum rootless_label_scope *ret_label) {
        if (s->namespace)
                nd_try(check_name("namespace", s->namespace));
        if (s->node_name)
                nd_try(check_name("node-name", s->node_name));
        if (s->user && !is_user(s->user))
                return nd_error_new(ND_INVALID, 0, "--user: invalid name '%.64s'", s->user);
        nd_try(rootless_label_scope_parse(s->label ? s->label : "all", ret_label));
        if (*ret_label == LABEL_OWN && !s->node_name)
                return nd_error_new(ND_INVALID, 0, "--label own needs --node-name: RBAC has no rule for the own node");
        if (*ret_label != LABEL_OWN && s->node_name)
                return nd_error_new(ND_INVALID, 0,
                                    "--node-name needs --label own: the other nodes cannot be labelled with it");
        return nullptr;
}

static void write_account(struct nd_text *text, const char *namespace, const char *name) {
        nd_text_addf(text,
                     "---\n"
                     "apiVersion: v1\n"
                     "kind: ServiceAccount\n"
                     "metadata: {name: %s, namespace: %s}\n",
                     name, namespace);
}

static void write_binding(struct nd_text *text, const char *name, const char *role, const char *namespace, const char *account,
                          const char *user) {
        nd_text_addf(text,
                     "---\n"
                     "apiVersion: rbac.authorization.k8s.io/v1\n"
                     "kind: ClusterRoleBinding\n"
                     "metadata: {name: \"%s\"}\n"
                     "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"%s\"}\n"
                     "subjects:\n"
                     "- {kind: ServiceAccount, name: %s, namespace: %s}\n",
                     name, role, account, namespace);
        if (user)
                nd_text_addf(text, "- {apiGroup: rbac.authorization.k8s.io, kind: User, name: \"%s\"}\n", user);
}

static void write_role(struct nd_text *text, const struct rootless_manifest_settings *s, enum rootless_label_scope label) {
        nd_text_add(text, "---\n"
                          "apiVersion: rbac.authorization.k8s.io/v1\n"
                          "kind: ClusterRole\n"
                          "metadata: {name: \"nodens:rootless-controller\"}\n"
                          "rules:\n"
                          "- {apiGroups: [\"\"], resources: [services, pods], verbs: [list, watch]}\n"
                          "- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}\n"
                          "- {apiGroups: [\"\"], resources: [events], verbs: [create]}\n");
        if (label != LABEL_NONE)
                nd_text_add(text, "- {apiGroups: [\"\"], resources: [nodes], verbs: [list, watch]}\n");
        if (label == LABEL_ALL)
                nd_text_add(text, "- {apiGroups: [\"\"], resources: [nodes], verbs: [patch]}\n");
        if (label == LABEL_OWN)
                nd_text_addf(text, "- {apiGroups: [\"\"], resources: [nodes], resourceNames: [\"%s\"], verbs: [patch]}\n",
                             s->node_name);
        if (s->ingress)
                nd_text_add(text, "- {apiGroups: [\"\"], resources: [services/status], verbs: [patch]}\n");
}

/* ---- the policy for sysctls ---- */

/* The names of sysctls, as Kubernetes allows them, with dots; '*' at the end makes a prefix.
 * Nothing in them ends a text of CEL or of YAML. */
static struct nd_error *check_sysctls(const char *text, struct nd_strings *ret) {
        nd_autofree char *copy = nd_strdup(text);

        for (char *rest = copy, *name; (name = strsep(&rest, ","));) {
                size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-."),
                       end = length + (name[length] == '*' && length > 0 && name[length - 1] == '.' ? 1 : 0);

                if (length == 0 || length >= CLUSTER_NAME_TEXT || name[end] != '\0')
                        return nd_error_new(ND_INVALID, 0, "--strip-sysctls: invalid name of a sysctl '%.64s'", name);
                if (!nd_strings_add_within(ret, SYSCTLS_CEILING, name))
                        return nd_error_new(ND_INVALID, 0, "--strip-sysctls: more than %d names", SYSCTLS_CEILING);
        }
        return nullptr;
}

/* The CEL expression for a sysctl @s that is removed. Names may be written with slashes. */
static void add_condition(struct nd_text *text, const struct nd_strings *names) {
        nd_vector_each (name, names) {
                size_t length = strlen(*name);
                bool prefix = (*name)[length - 1] == '*';

                nd_text_addf(text, "%ss.name.replace('/', '.')%s'%.*s'%s", name == names->items ? "" : " || ",
                             prefix ? ".startsWith(" : " == ", (int) (prefix ? length - 1 : length), *name, prefix ? ")" : "");
        }
}

static struct nd_error *write_sysctl_policy(struct nd_text *text, const char *given) {
        nd_autotext struct nd_text condition = ND_TEXT(32 * 1024);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        const char *c;

        nd_try(check_sysctls(given, &names));
        add_condition(&condition, &names);
        c = nd_text_get(&condition);
        nd_text_addf(
                text,
                "---\n"
                "apiVersion: admissionregistration.k8s.io/v1\n"
                "kind: MutatingAdmissionPolicy\n"
                "metadata: {name: nodens-rootless-sysctls}\n"
                "spec:\n"
                "  failurePolicy: Ignore\n"
                "  reinvocationPolicy: IfNeeded\n"
                "  matchConstraints:\n"
                "    resourceRules:\n"
                "    - {apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}\n"
                "  matchConditions:\n"
                "  - name: selects-nodes-without-root\n"
                "    expression: >-\n"
                "      has(object.spec.nodeSelector) && '" CLUSTER_LABEL "' in object.spec.nodeSelector &&\n"
                "      object.spec.nodeSelector['" CLUSTER_LABEL "'] == 'true'\n"
                "  - name: has-such-sysctls\n"
                "    expression: >-\n"
                "      has(object.spec.securityContext) && has(object.spec.securityContext.sysctls) &&\n"
                "      object.spec.securityContext.sysctls.exists(s, %s)\n"
                "  mutations:\n"
                "  - patchType: JSONPatch\n"
                "    jsonPatch:\n"
                "      expression: >-\n"
                "        (has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}]) +\n"
                "        [JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('nodens.io/removed-sysctls'),\n"
                "        value: object.spec.securityContext.sysctls.filter(s, %s).map(s, s.name).join(',')},\n"
                "        JSONPatch{op: 'replace', path: '/spec/securityContext/sysctls',\n"
                "        value: object.spec.securityContext.sysctls.map(s, !(%s), {'name': s.name, 'value': s.value})}]\n"
                "---\n"
                "apiVersion: admissionregistration.k8s.io/v1\n"
                "kind: MutatingAdmissionPolicyBinding\n"
                "metadata: {name: nodens-rootless-sysctls}\n"
                "spec: {policyName: nodens-rootless-sysctls}\n",
                c, c, c);
        return nullptr;
}

struct nd_error *rootless_manifest_write(const struct rootless_manifest_settings *settings, struct nd_text *text) {
        const char *namespace = settings->namespace ? settings->namespace : "nodens-system";
        enum rootless_label_scope label;

        nd_try(check(settings, &label));
        nd_text_addf(text,
                     "apiVersion: v1\n"
                     "kind: Namespace\n"
                     "metadata: {name: %s}\n",
                     namespace);
        write_account(text, namespace, "nodens-rootless-controller");
        write_role(text, settings, label);
        write_binding(text, "nodens:rootless-controller", "nodens:rootless-controller", namespace,
                      "nodens-rootless-controller", settings->user);
        write_account(text, namespace, "nodens-rootless-proxy");
        write_binding(text, "nodens:rootless-proxy", "system:node-proxier", namespace, "nodens-rootless-proxy", nullptr);
        if (settings->strip_sysctls)
                nd_try(write_sysctl_policy(text, settings->strip_sysctls));
        return text->overflow ? nd_error_new(ND_INVALID, E2BIG, "the manifest is too long") : nullptr;
}
