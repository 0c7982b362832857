/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/plane/objects.h"

#include <string.h>

#include "base/json.h"
#include "base/yaml.h"
#include "rootless/controller/manifest.h"
#include "rootless/plane/kubeconfig.h"

#define RBAC "/apis/rbac.authorization.k8s.io/v1"
#define APPLY "?fieldManager=nodens-rootless&force=true"

enum { OBJECTS_BYTES = 1 << 20 };

/* Collections by kind; %s is the namespace. */
static const struct {
        const char *kind, *path;
} kinds[] = {
        {"Namespace", "/api/v1/namespaces"},
        {"ServiceAccount", "/api/v1/namespaces/%s/serviceaccounts"},
        {"ConfigMap", "/api/v1/namespaces/%s/configmaps"},
        {"Role", RBAC "/namespaces/%s/roles"},
        {"RoleBinding", RBAC "/namespaces/%s/rolebindings"},
        {"ClusterRole", RBAC "/clusterroles"},
        {"ClusterRoleBinding", RBAC "/clusterrolebindings"},
};

/* A kubelet with a bootstrap token requests a certificate, which the controller manager approves;
 * so it does when the kubelet renews it. kube-proxy of such a node uses the kubelet's credential.
 * The token also gives a credential for the controller of the node, which labels nodes and reads
 * Services. */
static const char rights[] =
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        "metadata: {name: \"nodens:apiserver-kubelet-client\"}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"system:kubelet-api-admin\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        "metadata: {name: \"nodens:node-bootstrapper\"}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"system:node-bootstrapper\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"" PLANE_TOKEN_GROUP "\"}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        "metadata: {name: \"nodens:node-autoapprove-bootstrap\"}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "
        "\"system:certificates.k8s.io:certificatesigningrequests:nodeclient\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"" PLANE_TOKEN_GROUP "\"}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        "metadata: {name: \"nodens:node-autoapprove-rotation\"}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "
        "\"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:nodes\"}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: ClusterRoleBinding\n"
        "metadata: {name: \"nodens:node-proxier\"}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \"system:node-proxier\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"system:nodes\"}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: Role\n"
        "metadata: {name: \"nodens:controller-token\", namespace: " PLANE_NAMESPACE "}\n"
        "rules: [{apiGroups: [\"\"], resources: [serviceaccounts/token], resourceNames: [" PLANE_CONTROLLER_ACCOUNT
        "], verbs: [create]}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: RoleBinding\n"
        "metadata: {name: \"nodens:controller-token\", namespace: " PLANE_NAMESPACE "}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: \"nodens:controller-token\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: \"" PLANE_TOKEN_GROUP "\"}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: Role\n"
        "metadata: {name: \"nodens:cluster-info\", namespace: kube-public}\n"
        "rules: [{apiGroups: [\"\"], resources: [configmaps], resourceNames: [cluster-info], verbs: [get]}]\n"
        "---\n"
        "apiVersion: rbac.authorization.k8s.io/v1\n"
        "kind: RoleBinding\n"
        "metadata: {name: \"nodens:cluster-info\", namespace: kube-public}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: \"nodens:cluster-info\"}\n"
        "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: \"system:anonymous\"}]\n";

static struct nd_error *format_path(yyjson_val *object, struct nd_text *path) {
        yyjson_val *metadata = yyjson_obj_get(object, "metadata");
        const char *name = yyjson_get_str(yyjson_obj_get(metadata, "name")),
                   *namespace = yyjson_get_str(yyjson_obj_get(metadata, "namespace"));

        for (size_t i = 0; i < nd_count_of(kinds); i++) {
                const char *slot = strstr(kinds[i].path, "%s");

                if (!yyjson_equals_str(yyjson_obj_get(object, "kind"), kinds[i].kind) || !name || (slot && !namespace))
                        continue;
                nd_text_append(path, kinds[i].path, slot ? (size_t) (slot - kinds[i].path) : strlen(kinds[i].path));
                if (slot) {
                        nd_api_escape(path, namespace);
                        nd_text_add(path, slot + strlen("%s"));
                }
                nd_text_add(path, "/");
                nd_api_escape(path, name);
                nd_text_add(path, APPLY);
                return nullptr;
        }
        return nd_error_new(ND_INTERNAL, 0, "an object of unknown kind");
}

static struct nd_error *apply(yyjson_doc *doc, [[maybe_unused]] size_t line, void *userdata) {
        struct rootless_plane_client *client = userdata;
        nd_autotext struct nd_text path = ND_TEXT(4096);
        nd_autofree char *body = yyjson_write(doc, 0, nullptr);

        nd_try(format_path(yyjson_doc_get_root(doc), &path));
        return nd_error_wrap(rootless_plane_send(client,
                                                 &(struct rootless_plane_call) {.method = "PATCH",
                                                                                .path = nd_text_get(&path),
                                                                                .content_type = "application/apply-patch+yaml",
                                                                                .body = body},
                                                 nullptr),
                             "apply '%s'", nd_text_get(&path));
}

/* A kubeconfig with the cluster only; the controller manager signs it with each token. */
static struct nd_error *apply_cluster_info(struct rootless_plane_client *client, const char *server, const char *ca) {
        nd_autotext struct nd_text text = ND_TEXT(OBJECTS_BYTES);
        struct nd_json_out out = {.text = &text};
        nd_autofree char *config =
                rootless_plane_kubeconfig(&(struct rootless_plane_context) {.name = "", .server = server, .ca = ca}, 1);
        nd_autojson yyjson_doc *doc = nullptr;

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "v1");
        nd_json_string(&out, "kind", "ConfigMap");
        nd_json_open(&out, "metadata", '{');
        nd_json_string(&out, "name", "cluster-info");
        nd_json_string(&out, "namespace", "kube-public");
        nd_json_close(&out, '}');
        nd_json_open(&out, "data", '{');
        nd_json_string(&out, "kubeconfig", config);
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
        nd_try(nd_json_parse(nd_text_get(&text), text.length, OBJECTS_BYTES, &doc));
        return apply(doc, 0, client);
}

struct nd_error *rootless_plane_apply_objects(struct rootless_plane_client *client, const char *server, const char *ca) {
        nd_autotext struct nd_text text = ND_TEXT(OBJECTS_BYTES);
        struct rootless_manifest_settings manifest = {
                .namespace = PLANE_NAMESPACE, .user = PLANE_CONTROLLER_ACCOUNT, .label = "all", .ingress = true};

        nd_try(rootless_manifest_write(&manifest, &text));
        nd_text_add(&text, rights);
        nd_try(nd_yaml_each(nd_text_get(&text), text.length, OBJECTS_BYTES, apply, client));
        return apply_cluster_info(client, server, ca);
}
