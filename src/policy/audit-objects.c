/* SPDX-License-Identifier: Apache-2.0 */
/* audit-objects.c - facts about a cluster, and workloads, from objects of its API */
#include <string.h>

#include "policy/audit.h"

const struct nd_audit_resource nd_audit_resources[ND_AUDIT_KINDS] = {
        [ND_AUDIT_NAMESPACE] = {"Namespace", "", "/api/v1/namespaces", false},
        [ND_AUDIT_NODE] = {"Node", "", "/api/v1/nodes", false},
        [ND_AUDIT_RUNTIME_CLASS] = {"RuntimeClass", "node.k8s.io", "/apis/node.k8s.io/v1/runtimeclasses", false},
        [ND_AUDIT_FLOOR] = {"NodeVersionFloor", "security.nodens.io", "/apis/security.nodens.io/v1/nodeversionfloors", true},
        [ND_AUDIT_CONSTRAINT] = {"SecurityContextConstraints", "security.nodens.io",
                                 "/apis/security.nodens.io/v1/securitycontextconstraints", true},
        [ND_AUDIT_CONSTRAINT_OPENSHIFT] = {"SecurityContextConstraints", "security.openshift.io",
                                           "/apis/security.openshift.io/v1/securitycontextconstraints", true},
        [ND_AUDIT_CLUSTER_ROLE] = {"ClusterRole", "rbac.authorization.k8s.io",
                                   "/apis/rbac.authorization.k8s.io/v1/clusterroles", false},
        [ND_AUDIT_ROLE] = {"Role", "rbac.authorization.k8s.io", "/apis/rbac.authorization.k8s.io/v1/roles", false},
        [ND_AUDIT_CLUSTER_ROLE_BINDING] = {"ClusterRoleBinding", "rbac.authorization.k8s.io",
                                           "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", false},
        [ND_AUDIT_ROLE_BINDING] = {"RoleBinding", "rbac.authorization.k8s.io",
                                   "/apis/rbac.authorization.k8s.io/v1/rolebindings", false},
        [ND_AUDIT_VOLUME] = {"PersistentVolume", "", "/api/v1/persistentvolumes", false},
        [ND_AUDIT_CLAIM] = {"PersistentVolumeClaim", "", "/api/v1/persistentvolumeclaims", false},
        [ND_AUDIT_DEPLOYMENT] = {"Deployment", "apps", "/apis/apps/v1/deployments", false},
        [ND_AUDIT_STATEFUL_SET] = {"StatefulSet", "apps", "/apis/apps/v1/statefulsets", false},
        [ND_AUDIT_DAEMON_SET] = {"DaemonSet", "apps", "/apis/apps/v1/daemonsets", false},
        [ND_AUDIT_REPLICA_SET] = {"ReplicaSet", "apps", "/apis/apps/v1/replicasets", false},
        [ND_AUDIT_REPLICATION_CONTROLLER] = {"ReplicationController", "", "/api/v1/replicationcontrollers", false},
        [ND_AUDIT_CRON_JOB] = {"CronJob", "batch", "/apis/batch/v1/cronjobs", false},
        [ND_AUDIT_JOB] = {"Job", "batch", "/apis/batch/v1/jobs", false},
        [ND_AUDIT_POD] = {"Pod", "", "/api/v1/pods", false},
};

enum nd_audit_kind nd_audit_kind_of(const char *api_version, const char *kind) {
        const char *slash = strchr(api_version, '/');
        size_t length = slash ? (size_t) (slash - api_version) : 0;

        for (enum nd_audit_kind i = 0; i < ND_AUDIT_KINDS; i++) {
                const char *group = nd_audit_resources[i].group;

                if (nd_streq(kind, nd_audit_resources[i].kind) && strlen(group) == length &&
                    strncmp(group, api_version, length) == 0)
                        return i;
        }
        return ND_AUDIT_KINDS;
}

void nd_audit_cluster_done(struct nd_audit_cluster *cluster) {
        struct nd_map *const maps[] = {
                &cluster->namespaces, &cluster->nodes,   &cluster->classes, &cluster->constraint_names, &cluster->roles,
                &cluster->granted,    &cluster->volumes, &cluster->claims,  &cluster->images,           &cluster->host_mapped};

        for (size_t i = 0; i < nd_count_of(maps); i++)
                nd_map_done(maps[i]);
        nd_vector_done(&cluster->constraints);
        nd_vector_done(&cluster->grants);
}

/* ---- namespaces, classes, the floor ---- */

struct named {
        struct nd_kube_metadata metadata;
        const char *handler; /* of a runtime class */
};

static const struct nd_shape_field named_fields[] = {
        ND_NESTED(named, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_FIELD(named, "handler", handler, TEXT),
        {},
};
static const struct nd_shape named_shape = ND_SHAPE_OF(named, named_fields);

/* Objects are decoded into an arena of their own: annotations may be larger than all facts. */
static const char *keep(struct nd_audit_cluster *cluster, const char *text) {
        return text && *text ? nd_arena_strdup(cluster->arena, text) : "";
}

static const char *keep_or_null(struct nd_audit_cluster *cluster, const char *text) {
        return text ? nd_arena_strdup(cluster->arena, text) : nullptr;
}

static struct nd_scc_namespace keep_ranges(struct nd_audit_cluster *cluster, const struct nd_shape_pairs *annotations) {
        struct nd_scc_namespace ranges = nd_scc_namespace_of(annotations);

        return (struct nd_scc_namespace) {.uid_range = keep_or_null(cluster, ranges.uid_range),
                                          .supplemental_groups = keep_or_null(cluster, ranges.supplemental_groups),
                                          .mcs = keep_or_null(cluster, ranges.mcs)};
}

static struct nd_error *put_namespace(struct nd_audit_cluster *cluster, yyjson_val *object) {
        static const struct nd_podsecurity_policy defaults = {.enforce.version.latest = true};
        nd_autoarena struct nd_arena scratch = {};
        nd_cleanup(nd_field_errors_done) struct nd_field_errors errors = {.arena = &scratch};
        struct nd_audit_namespace *namespace = nd_arena_new(cluster->arena, struct nd_audit_namespace);
        struct nd_podsecurity_policy policy;
        struct named named = {};

        nd_try(nd_shape_decode(&named_shape, object, &scratch, &named));
        nd_podsecurity_of_labels(&named.metadata.labels, ND_PODSECURITY_PREFIX, &defaults, &policy, &errors);
        *namespace = (struct nd_audit_namespace) {
                .name = keep(cluster, named.metadata.name),
                .constraints = keep(cluster, nd_shape_pairs_get(&named.metadata.labels, ND_AUDIT_LABEL_CONSTRAINTS)),
                .user_namespaces = keep(cluster, nd_shape_pairs_get(&named.metadata.labels, ND_AUDIT_LABEL_USER_NAMESPACES)),
                .has_enforce_label = nd_shape_pairs_get(&named.metadata.labels, ND_PODSECURITY_PREFIX "enforce"),
                .enforce = policy.enforce,
                .ranges = keep_ranges(cluster, &named.metadata.annotations)};
        (void) nd_map_put(&cluster->namespaces, namespace->name, namespace);
        return nullptr;
}

static struct nd_error *put_class(struct nd_audit_cluster *cluster, yyjson_val *object) {
        nd_autoarena struct nd_arena scratch = {};
        struct named named = {};

        nd_try(nd_shape_decode(&named_shape, object, &scratch, &named));
        (void) nd_map_put(&cluster->classes, nd_kube_or_empty(named.metadata.name), (void *) keep(cluster, named.handler));
        return nullptr;
}

static bool is_below(const char *version, const char *minimum) {
        struct nd_floor_version least;

        return nd_floor_minimum_parse(minimum, &least) == 0 && !nd_floor_meets(&least, version);
}

/* Existing nodes are judged by the status. A floor never lowers the minimum: below the default one
 * kubelets do not honour hostUsers. */
static struct nd_error *put_floor(struct nd_audit_cluster *cluster, yyjson_val *object) {
        nd_autoarena struct nd_arena scratch = {};
        const struct nd_floor_version *existing;
        struct nd_floor floor;
        const char *minimum;

        if (!yyjson_equals_str(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "name"), ND_FLOOR_NAME))
                return nullptr;
        nd_try(nd_floor_decode(object, &scratch, &floor));
        existing = nd_floor_of_existing(&floor);
        minimum = nd_floor_version_text(nd_floor_version_is_set(existing) ? existing : &floor.spec, &scratch);
        if (is_below(cluster->minimum, minimum))
                cluster->minimum = keep(cluster, minimum);
        return nullptr;
}

/* ---- nodes ---- */

struct features {
        bool user_namespaces;
};

struct handler {
        const char *name;
        struct features features;
};

struct node_info {
        const char *kubelet;
        const char *system;
};

struct node_spec {
        bool unschedulable;
};

struct node_status {
        nd_list(struct handler) handlers;
        struct node_info info;
};

struct node {
        struct nd_kube_metadata metadata;
        struct node_spec spec;
        struct node_status status;
};

static const struct nd_shape_field features_fields[] = {ND_FIELD(features, "userNamespaces", user_namespaces, BOOL), {}};
static const struct nd_shape features_shape = ND_SHAPE_OF(features, features_fields);
static const struct nd_shape_field handler_fields[] = {
        ND_FIELD(handler, "name", name, TEXT),
        ND_NESTED(handler, "features", features, INLINE, features_shape),
        {},
};
static const struct nd_shape handler_shape = ND_SHAPE_OF(handler, handler_fields);
static const struct nd_shape_field node_info_fields[] = {
        ND_FIELD(node_info, "kubeletVersion", kubelet, TEXT),
        ND_FIELD(node_info, "operatingSystem", system, TEXT),
        {},
};
static const struct nd_shape node_info_shape = ND_SHAPE_OF(node_info, node_info_fields);
static const struct nd_shape_field node_spec_fields[] = {ND_FIELD(node_spec, "unschedulable", unschedulable, BOOL), {}};
static const struct nd_shape node_spec_shape = ND_SHAPE_OF(node_spec, node_spec_fields);
static const struct nd_shape_field node_status_fields[] = {
        ND_NESTED(node_status, "runtimeHandlers", handlers, LIST, handler_shape),
        ND_NESTED(node_status, "nodeInfo", info, INLINE, node_info_shape),
        {},
};
static const struct nd_shape node_status_shape = ND_SHAPE_OF(node_status, node_status_fields);
static const struct nd_shape_field node_fields[] = {
        ND_NESTED(node, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_NESTED(node, "spec", spec, INLINE, node_spec_shape),
        ND_NESTED(node, "status", status, INLINE, node_status_shape),
        {},
};
static const struct nd_shape node_shape = ND_SHAPE_OF(node, node_fields);

static struct nd_error *put_node(struct nd_audit_cluster *cluster, yyjson_val *object) {
        struct nd_audit_node *found = nd_arena_new(cluster->arena, struct nd_audit_node);
        nd_autoarena struct nd_arena scratch = {};
        struct node node = {};
        const char **handlers;

        nd_try(nd_shape_decode(&node_shape, object, &scratch, &node));
        handlers = nd_arena_alloc(cluster->arena, node.status.handlers.count, sizeof *handlers);
        *found = (struct nd_audit_node) {.name = keep(cluster, node.metadata.name),
                                         .version = keep(cluster, node.status.info.kubelet),
                                         .schedulable = !node.spec.unschedulable,
                                         .windows = nd_streq(nd_kube_or_empty(node.status.info.system), "windows"),
                                         .handlers = {.items = handlers}};
        for (size_t i = 0; i < node.status.handlers.count; i++)
                if (node.status.handlers.items[i].features.user_namespaces)
                        handlers[found->handlers.count++] = keep(cluster, node.status.handlers.items[i].name);
        (void) nd_map_put(&cluster->nodes, found->name, found);
        return nullptr;
}

/* ---- volumes ---- */

static const char *text_at(struct nd_arena *arena, yyjson_val *object, const char *key) {
        yyjson_val *value = yyjson_obj_get(object, key);
        const char *text = yyjson_get_str(value);

        return text && !memchr(text, '\0', yyjson_get_len(value)) ? nd_arena_strdup(arena, text) : "";
}

/* The member of a volume's spec that names its source is one of many: the names are those of a
 * pod's volumes, and "local". */
static const char *source_of(yyjson_val *spec, yyjson_val **ret) {
        for (size_t i = 0; i < ND_VOLUME_SOURCES; i++) {
                *ret = yyjson_obj_get(spec, nd_pod_volume_source_names[i]);
                if (yyjson_is_obj(*ret))
                        return nd_pod_volume_source_names[i];
        }
        *ret = yyjson_obj_get(spec, "local");
        return yyjson_is_obj(*ret) ? "local" : "";
}

static bool is_block(yyjson_val *spec) {
        const char *mode = yyjson_get_str(yyjson_obj_get(spec, "volumeMode"));

        return mode && nd_streq(mode, "Block");
}

static struct nd_error *put_volume(struct nd_audit_cluster *cluster, yyjson_val *object) {
        struct nd_audit_volume *volume = nd_arena_new(cluster->arena, struct nd_audit_volume);
        yyjson_val *spec = yyjson_obj_get(object, "spec"), *source;
        nd_autoarena struct nd_arena scratch = {};
        struct named named = {};

        nd_try(nd_shape_decode(&named_shape, object, &scratch, &named));
        volume->source = source_of(spec, &source);
        volume->driver = text_at(cluster->arena, source, "driver");
        volume->filesystem = text_at(cluster->arena, source, "fsType");
        volume->block = is_block(spec);
        (void) nd_map_put(&cluster->volumes, nd_kube_or_empty(named.metadata.name), volume);
        return nullptr;
}

static struct nd_error *put_claim(struct nd_audit_cluster *cluster, yyjson_val *object) {
        struct nd_audit_claim *claim = nd_arena_new(cluster->arena, struct nd_audit_claim);
        yyjson_val *spec = yyjson_obj_get(object, "spec");
        nd_autoarena struct nd_arena scratch = {};
        nd_autofree char *key = nullptr;
        struct named named = {};

        nd_try(nd_shape_decode(&named_shape, object, &scratch, &named));
        claim->volume = text_at(cluster->arena, spec, "volumeName");
        claim->block = is_block(spec);
        key = nd_format("%s/%s", nd_kube_or_empty(named.metadata.namespace), nd_kube_or_empty(named.metadata.name));
        (void) nd_map_put(&cluster->claims, key, claim);
        return nullptr;
}

/* ---- constraints ---- */

/* If both API groups exist, the guard's own constraints are in force. */
static struct nd_error *put_constraint(struct nd_audit_cluster *cluster, yyjson_val *object) {
        struct nd_scc *scc = nd_arena_new(cluster->arena, struct nd_scc);
        const char *name;

        nd_try(nd_scc_decode(object, cluster->arena, scc));
        name = nd_kube_or_empty(scc->metadata.name);
        if (nd_map_has(&cluster->constraint_names, name))
                return nullptr;
        (void) nd_map_put(&cluster->constraint_names, name, scc);
        nd_vector_push(&cluster->constraints, scc);
        nd_audit_put_subjects(cluster, scc);
        return nullptr;
}

struct nd_error *nd_audit_put(struct nd_audit_cluster *cluster, enum nd_audit_kind kind, yyjson_val *object) {
        switch (kind) {
        case ND_AUDIT_NAMESPACE:
                return put_namespace(cluster, object);
        case ND_AUDIT_NODE:
                return put_node(cluster, object);
        case ND_AUDIT_RUNTIME_CLASS:
                return put_class(cluster, object);
        case ND_AUDIT_FLOOR:
                return put_floor(cluster, object);
        case ND_AUDIT_CONSTRAINT:
        case ND_AUDIT_CONSTRAINT_OPENSHIFT:
                return put_constraint(cluster, object);
        case ND_AUDIT_CLUSTER_ROLE:
        case ND_AUDIT_ROLE:
                return nd_audit_put_role(cluster, kind, object);
        case ND_AUDIT_CLUSTER_ROLE_BINDING:
        case ND_AUDIT_ROLE_BINDING:
                return nd_audit_put_binding(cluster, kind, object);
        case ND_AUDIT_VOLUME:
                return put_volume(cluster, object);
        case ND_AUDIT_CLAIM:
                return put_claim(cluster, object);
        default:
                return nd_error_new(ND_INTERNAL, 0, "%s is not a fact", nd_audit_resources[kind].kind);
        }
}

/* The minimum version is known only when the floor has been read, after the nodes. */
void nd_audit_settle(struct nd_audit_cluster *cluster) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&cluster->nodes, &at));) {
                struct nd_audit_node *node = slot->value;

                node->too_old = is_below(node->version, cluster->minimum);
        }
        cluster->set = nd_scc_set_make(cluster->constraints.items, cluster->constraints.count, cluster->arena);
}
