/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/cluster/manifest.h"

#include "rootless/cluster/objects.h"
#include "rootless/cluster/settings.h"

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
        return nullptr;
}
