/* SPDX-License-Identifier: Apache-2.0 */
/* pod.h - the fields of a pod that policy evaluates
 *
 * Only the fields that pod security standards, security context constraints and the API's own rules
 * for user namespaces need. A pod lives in the arena it was decoded into. */
#pragma once

#include "kube/shape.h"

enum {
        ND_POD_BYTES = 3 << 20, /* the API server's limit of one object */
};

struct nd_pod_selinux {
        const char *user; /* nullptr and "" are equal in all four */
        const char *role;
        const char *type;
        const char *level;
};

/* For seccomp and AppArmor. */
struct nd_pod_profile {
        const char *type;
        const char *localhost;
};

struct nd_pod_capabilities {
        struct nd_shape_texts add;
        struct nd_shape_texts drop;
};

struct nd_pod_windows {
        enum nd_shape_switch host_process;
};

struct nd_pod_container_context {
        enum nd_shape_switch privileged;
        enum nd_shape_switch allow_privilege_escalation;
        enum nd_shape_switch read_only_root;
        enum nd_shape_switch run_as_non_root;
        struct nd_shape_int run_as_user;
        struct nd_shape_int run_as_group;
        const char *proc_mount;
        struct nd_pod_capabilities *capabilities;
        struct nd_pod_selinux *selinux;
        struct nd_pod_profile *seccomp;
        struct nd_pod_profile *apparmor;
        struct nd_pod_windows *windows;
};

struct nd_pod_sysctl {
        const char *name;
};

struct nd_pod_context {
        enum nd_shape_switch run_as_non_root;
        struct nd_shape_int run_as_user;
        struct nd_shape_int run_as_group;
        struct nd_shape_int fs_group;
        struct nd_shape_ints supplemental_groups;
        const char *supplemental_groups_policy;
        nd_list(struct nd_pod_sysctl) sysctls;
        struct nd_pod_selinux *selinux;
        struct nd_pod_profile *seccomp;
        struct nd_pod_profile *apparmor;
        struct nd_pod_windows *windows;
};

struct nd_pod_port {
        struct nd_shape_int host_port;
};

/* The address of a probe or a hook. */
struct nd_pod_endpoint {
        const char *host;
};

/* Of a probe or of the lifecycle. */
struct nd_pod_handler {
        struct nd_pod_endpoint *http;
        struct nd_pod_endpoint *tcp;
};

struct nd_pod_lifecycle {
        struct nd_pod_handler *post_start;
        struct nd_pod_handler *pre_stop;
};

struct nd_pod_volume_device {
        const char *name;
};

struct nd_pod_volume_mount {
        const char *name;
        const char *propagation; /* mountPropagation */
};

struct nd_pod_container {
        const char *name;
        const char *image;
        nd_list(struct nd_pod_port) ports;
        nd_list(struct nd_pod_volume_device) volume_devices;
        nd_list(struct nd_pod_volume_mount) volume_mounts; /* for advice */
        struct nd_pod_handler *liveness;
        struct nd_pod_handler *readiness;
        struct nd_pod_handler *startup;
        struct nd_pod_lifecycle *lifecycle;
        struct nd_pod_container_context *security;
};

/* Sources of a volume, in the order of nd_pod_volume_source_names. */
enum nd_pod_volume_source {
        ND_VOLUME_AWS_ELASTIC_BLOCK_STORE,
        ND_VOLUME_AZURE_DISK,
        ND_VOLUME_AZURE_FILE,
        ND_VOLUME_CEPHFS,
        ND_VOLUME_CINDER,
        ND_VOLUME_CONFIG_MAP,
        ND_VOLUME_CSI,
        ND_VOLUME_DOWNWARD_API,
        ND_VOLUME_EMPTY_DIR,
        ND_VOLUME_EPHEMERAL,
        ND_VOLUME_FC,
        ND_VOLUME_FLEX_VOLUME,
        ND_VOLUME_FLOCKER,
        ND_VOLUME_GCE_PERSISTENT_DISK,
        ND_VOLUME_GIT_REPO,
        ND_VOLUME_GLUSTERFS,
        ND_VOLUME_HOST_PATH,
        ND_VOLUME_IMAGE,
        ND_VOLUME_ISCSI,
        ND_VOLUME_NFS,
        ND_VOLUME_PERSISTENT_VOLUME_CLAIM,
        ND_VOLUME_PHOTON_PERSISTENT_DISK,
        ND_VOLUME_PORTWORX_VOLUME,
        ND_VOLUME_PROJECTED,
        ND_VOLUME_QUOBYTE,
        ND_VOLUME_RBD,
        ND_VOLUME_SCALE_IO,
        ND_VOLUME_SECRET,
        ND_VOLUME_STORAGEOS,
        ND_VOLUME_VSPHERE_VOLUME,
        ND_VOLUME_SOURCES,
};

/* As in the API: "hostPath". */
extern const char *const nd_pod_volume_source_names[ND_VOLUME_SOURCES];

static inline uint64_t nd_pod_volume_bit(enum nd_pod_volume_source source) {
        return UINT64_C(1) << source;
}

struct nd_pod_flex_volume {
        const char *driver;
};

/* Projected volumes are decoded only as far as needed to recognise that of the service account. */
struct nd_pod_key_path {
        const char *key;
        const char *path;
};

struct nd_pod_field_ref {
        const char *api_version;
        const char *field_path;
};

struct nd_pod_downward_item {
        const char *path;
        struct nd_pod_field_ref *field_ref;
};

struct nd_pod_token_source {
        const char *path;
        const char *audience;
};

struct nd_pod_config_map_source {
        const char *name;
        nd_list(struct nd_pod_key_path) items;
};

struct nd_pod_downward_source {
        nd_list(struct nd_pod_downward_item) items;
};

struct nd_pod_projected_source {
        struct nd_pod_token_source *token;
        struct nd_pod_config_map_source *config_map;
        struct nd_pod_downward_source *downward;
};

struct nd_pod_projected {
        nd_list(struct nd_pod_projected_source) sources;
};

struct nd_pod_host_path {
        const char *path;
        const char *type;
};

struct nd_pod_empty_dir {
        const char *medium;
};

struct nd_pod_claim_source {
        const char *name; /* claimName */
};

struct nd_pod_volume {
        const char *name;
        uint64_t sources; /* bits; more than one if the object is invalid */
        struct nd_pod_flex_volume *flex;
        struct nd_pod_host_path *host_path;
        struct nd_pod_empty_dir *empty_dir;
        struct nd_pod_claim_source *claim;
        struct nd_pod_projected *projected;
};

struct nd_pod_os {
        const char *name;
};

struct nd_pod_spec {
        bool host_network;
        bool host_pid;
        bool host_ipc;
        enum nd_shape_switch host_users;
        const char *service_account;
        const char *runtime_class;
        const char *node_name;
        struct nd_pod_os *os;
        struct nd_pod_context *security;
        nd_list(struct nd_pod_container) init_containers;
        nd_list(struct nd_pod_container) containers;
        nd_list(struct nd_pod_container) ephemeral_containers;
        nd_list(struct nd_pod_volume) volumes;
};

struct nd_kube_metadata {
        const char *name;
        const char *generate_name;
        const char *namespace;
        struct nd_shape_pairs labels;
        struct nd_shape_pairs annotations;
};

struct nd_pod {
        struct nd_kube_metadata metadata;
        struct nd_pod_spec spec;
};

extern const struct nd_shape nd_pod_shape; /* for objects that contain a pod or a pod's template */
extern const struct nd_shape nd_kube_metadata_shape;
extern const struct nd_shape nd_pod_selinux_shape;

/* Strict JSON, as the API server sends it. */
[[nodiscard]] struct nd_error *nd_pod_decode(const char *bytes, size_t length, struct nd_arena *arena, struct nd_pod *ret);

/* All containers in Kubernetes' order: init, regular, ephemeral. nullptr after the last. */
struct nd_pod_container *nd_pod_container(const struct nd_pod_spec *spec, size_t index);
/* Returns the list and the index in it, for paths: "initContainers", 2. */
const char *nd_pod_container_list(const struct nd_pod_spec *spec, size_t index, size_t *ret_number);

/* Returns a copy whose spec, containers, contexts and annotations can be changed without changing
 * the original; strings are shared. */
struct nd_pod *nd_pod_copy(const struct nd_pod *pod, struct nd_arena *arena);
/* Creates the context if there is none. */
struct nd_pod_context *nd_pod_own_context(struct nd_pod *pod, struct nd_arena *arena);
struct nd_pod_container_context *nd_pod_container_own_context(struct nd_pod_container *container, struct nd_arena *arena);

bool nd_pod_is_windows(const struct nd_pod *pod);
static inline bool nd_pod_has_user_namespace(const struct nd_pod *pod) {
        return pod->spec.host_users == ND_OFF;
}
static inline const char *nd_kube_or_empty(const char *text) {
        return text ? text : "";
}
