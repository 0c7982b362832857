/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/pod.h"

#include <string.h>

#include "base/text.h"

static const struct nd_shape_field selinux_fields[] = {
        ND_FIELD(nd_pod_selinux, "user", user, TEXT),
        ND_FIELD(nd_pod_selinux, "role", role, TEXT),
        ND_FIELD(nd_pod_selinux, "type", type, TEXT),
        ND_FIELD(nd_pod_selinux, "level", level, TEXT),
        {},
};
const struct nd_shape nd_pod_selinux_shape = ND_SHAPE_OF(nd_pod_selinux, selinux_fields);

static const struct nd_shape_field profile_fields[] = {
        ND_FIELD(nd_pod_profile, "type", type, TEXT),
        ND_FIELD(nd_pod_profile, "localhostProfile", localhost, TEXT),
        {},
};
static const struct nd_shape profile_shape = ND_SHAPE_OF(nd_pod_profile, profile_fields);

static const struct nd_shape_field capabilities_fields[] = {
        ND_FIELD(nd_pod_capabilities, "add", add, TEXTS),
        ND_FIELD(nd_pod_capabilities, "drop", drop, TEXTS),
        {},
};
static const struct nd_shape capabilities_shape = ND_SHAPE_OF(nd_pod_capabilities, capabilities_fields);

static const struct nd_shape_field windows_fields[] = {
        ND_FIELD(nd_pod_windows, "hostProcess", host_process, SWITCH),
        {},
};
static const struct nd_shape windows_shape = ND_SHAPE_OF(nd_pod_windows, windows_fields);

static const struct nd_shape_field context_fields[] = {
        ND_FIELD(nd_pod_container_context, "privileged", privileged, SWITCH),
        ND_FIELD(nd_pod_container_context, "allowPrivilegeEscalation", allow_privilege_escalation, SWITCH),
        ND_FIELD(nd_pod_container_context, "readOnlyRootFilesystem", read_only_root, SWITCH),
        ND_FIELD(nd_pod_container_context, "runAsNonRoot", run_as_non_root, SWITCH),
        ND_FIELD(nd_pod_container_context, "runAsUser", run_as_user, INT),
        ND_FIELD(nd_pod_container_context, "runAsGroup", run_as_group, INT),
        ND_FIELD(nd_pod_container_context, "procMount", proc_mount, TEXT),
        ND_NESTED(nd_pod_container_context, "capabilities", capabilities, OBJECT, capabilities_shape),
        ND_NESTED(nd_pod_container_context, "seLinuxOptions", selinux, OBJECT, nd_pod_selinux_shape),
        ND_NESTED(nd_pod_container_context, "seccompProfile", seccomp, OBJECT, profile_shape),
        ND_NESTED(nd_pod_container_context, "appArmorProfile", apparmor, OBJECT, profile_shape),
        ND_NESTED(nd_pod_container_context, "windowsOptions", windows, OBJECT, windows_shape),
        {},
};
static const struct nd_shape context_shape = ND_SHAPE_OF(nd_pod_container_context, context_fields);

static const struct nd_shape_field sysctl_fields[] = {
        ND_FIELD(nd_pod_sysctl, "name", name, TEXT),
        {},
};
static const struct nd_shape sysctl_shape = ND_SHAPE_OF(nd_pod_sysctl, sysctl_fields);

static const struct nd_shape_field pod_context_fields[] = {
        ND_FIELD(nd_pod_context, "runAsNonRoot", run_as_non_root, SWITCH),
        ND_FIELD(nd_pod_context, "runAsUser", run_as_user, INT),
        ND_FIELD(nd_pod_context, "runAsGroup", run_as_group, INT),
        ND_FIELD(nd_pod_context, "fsGroup", fs_group, INT),
        ND_FIELD(nd_pod_context, "supplementalGroups", supplemental_groups, INTS),
        ND_FIELD(nd_pod_context, "supplementalGroupsPolicy", supplemental_groups_policy, TEXT),
        ND_NESTED(nd_pod_context, "sysctls", sysctls, LIST, sysctl_shape),
        ND_NESTED(nd_pod_context, "seLinuxOptions", selinux, OBJECT, nd_pod_selinux_shape),
        ND_NESTED(nd_pod_context, "seccompProfile", seccomp, OBJECT, profile_shape),
        ND_NESTED(nd_pod_context, "appArmorProfile", apparmor, OBJECT, profile_shape),
        ND_NESTED(nd_pod_context, "windowsOptions", windows, OBJECT, windows_shape),
        {},
};
static const struct nd_shape pod_context_shape = ND_SHAPE_OF(nd_pod_context, pod_context_fields);

static const struct nd_shape_field port_fields[] = {
        ND_FIELD(nd_pod_port, "hostPort", host_port, INT32),
        {},
};
static const struct nd_shape port_shape = ND_SHAPE_OF(nd_pod_port, port_fields);

static const struct nd_shape_field endpoint_fields[] = {
        ND_FIELD(nd_pod_endpoint, "host", host, TEXT),
        {},
};
static const struct nd_shape endpoint_shape = ND_SHAPE_OF(nd_pod_endpoint, endpoint_fields);

static const struct nd_shape_field handler_fields[] = {
        ND_NESTED(nd_pod_handler, "httpGet", http, OBJECT, endpoint_shape),
        ND_NESTED(nd_pod_handler, "tcpSocket", tcp, OBJECT, endpoint_shape),
        {},
};
static const struct nd_shape handler_shape = ND_SHAPE_OF(nd_pod_handler, handler_fields);

static const struct nd_shape_field lifecycle_fields[] = {
        ND_NESTED(nd_pod_lifecycle, "postStart", post_start, OBJECT, handler_shape),
        ND_NESTED(nd_pod_lifecycle, "preStop", pre_stop, OBJECT, handler_shape),
        {},
};
static const struct nd_shape lifecycle_shape = ND_SHAPE_OF(nd_pod_lifecycle, lifecycle_fields);

static const struct nd_shape_field volume_device_fields[] = {
        ND_FIELD(nd_pod_volume_device, "name", name, TEXT),
        {},
};
static const struct nd_shape volume_device_shape = ND_SHAPE_OF(nd_pod_volume_device, volume_device_fields);

static const struct nd_shape_field volume_mount_fields[] = {
        ND_FIELD(nd_pod_volume_mount, "name", name, TEXT),
        ND_FIELD(nd_pod_volume_mount, "mountPropagation", propagation, TEXT),
        {},
};
static const struct nd_shape volume_mount_shape = ND_SHAPE_OF(nd_pod_volume_mount, volume_mount_fields);

static const struct nd_shape_field container_fields[] = {
        ND_FIELD(nd_pod_container, "name", name, TEXT),
        ND_FIELD(nd_pod_container, "image", image, TEXT),
        ND_NESTED(nd_pod_container, "ports", ports, LIST, port_shape),
        ND_NESTED(nd_pod_container, "volumeDevices", volume_devices, LIST, volume_device_shape),
        ND_NESTED(nd_pod_container, "volumeMounts", volume_mounts, LIST, volume_mount_shape),
        ND_NESTED(nd_pod_container, "livenessProbe", liveness, OBJECT, handler_shape),
        ND_NESTED(nd_pod_container, "readinessProbe", readiness, OBJECT, handler_shape),
        ND_NESTED(nd_pod_container, "startupProbe", startup, OBJECT, handler_shape),
        ND_NESTED(nd_pod_container, "lifecycle", lifecycle, OBJECT, lifecycle_shape),
        ND_NESTED(nd_pod_container, "securityContext", security, OBJECT, context_shape),
        {},
};
static const struct nd_shape container_shape = ND_SHAPE_OF(nd_pod_container, container_fields);

static const struct nd_shape_field flex_fields[] = {
        ND_FIELD(nd_pod_flex_volume, "driver", driver, TEXT),
        {},
};
static const struct nd_shape flex_shape = ND_SHAPE_OF(nd_pod_flex_volume, flex_fields);

static const struct nd_shape_field host_path_fields[] = {
        ND_FIELD(nd_pod_host_path, "path", path, TEXT),
        ND_FIELD(nd_pod_host_path, "type", type, TEXT),
        {},
};
static const struct nd_shape host_path_shape = ND_SHAPE_OF(nd_pod_host_path, host_path_fields);

static const struct nd_shape_field empty_dir_fields[] = {
        ND_FIELD(nd_pod_empty_dir, "medium", medium, TEXT),
        {},
};
static const struct nd_shape empty_dir_shape = ND_SHAPE_OF(nd_pod_empty_dir, empty_dir_fields);

static const struct nd_shape_field claim_fields[] = {
        ND_FIELD(nd_pod_claim_source, "claimName", name, TEXT),
        {},
};
static const struct nd_shape claim_shape = ND_SHAPE_OF(nd_pod_claim_source, claim_fields);

static const struct nd_shape_field key_path_fields[] = {
        ND_FIELD(nd_pod_key_path, "key", key, TEXT),
        ND_FIELD(nd_pod_key_path, "path", path, TEXT),
        {},
};
static const struct nd_shape key_path_shape = ND_SHAPE_OF(nd_pod_key_path, key_path_fields);

static const struct nd_shape_field field_ref_fields[] = {
        ND_FIELD(nd_pod_field_ref, "apiVersion", api_version, TEXT),
        ND_FIELD(nd_pod_field_ref, "fieldPath", field_path, TEXT),
        {},
};
static const struct nd_shape field_ref_shape = ND_SHAPE_OF(nd_pod_field_ref, field_ref_fields);

static const struct nd_shape_field downward_item_fields[] = {
        ND_FIELD(nd_pod_downward_item, "path", path, TEXT),
        ND_NESTED(nd_pod_downward_item, "fieldRef", field_ref, OBJECT, field_ref_shape),
        {},
};
static const struct nd_shape downward_item_shape = ND_SHAPE_OF(nd_pod_downward_item, downward_item_fields);

static const struct nd_shape_field token_fields[] = {
        ND_FIELD(nd_pod_token_source, "path", path, TEXT),
        ND_FIELD(nd_pod_token_source, "audience", audience, TEXT),
        {},
};
static const struct nd_shape token_shape = ND_SHAPE_OF(nd_pod_token_source, token_fields);

static const struct nd_shape_field config_map_fields[] = {
        ND_FIELD(nd_pod_config_map_source, "name", name, TEXT),
        ND_NESTED(nd_pod_config_map_source, "items", items, LIST, key_path_shape),
        {},
};
static const struct nd_shape config_map_shape = ND_SHAPE_OF(nd_pod_config_map_source, config_map_fields);

static const struct nd_shape_field downward_fields[] = {
        ND_NESTED(nd_pod_downward_source, "items", items, LIST, downward_item_shape),
        {},
};
static const struct nd_shape downward_shape = ND_SHAPE_OF(nd_pod_downward_source, downward_fields);

static const struct nd_shape_field projected_source_fields[] = {
        ND_NESTED(nd_pod_projected_source, "serviceAccountToken", token, OBJECT, token_shape),
        ND_NESTED(nd_pod_projected_source, "configMap", config_map, OBJECT, config_map_shape),
        ND_NESTED(nd_pod_projected_source, "downwardAPI", downward, OBJECT, downward_shape),
        {},
};
static const struct nd_shape projected_source_shape = ND_SHAPE_OF(nd_pod_projected_source, projected_source_fields);

static const struct nd_shape_field projected_fields[] = {
        ND_NESTED(nd_pod_projected, "sources", sources, LIST, projected_source_shape),
        {},
};
static const struct nd_shape projected_shape = ND_SHAPE_OF(nd_pod_projected, projected_fields);

#define SOURCES(entry)                                                                                                        \
        entry(AWS_ELASTIC_BLOCK_STORE, "awsElasticBlockStore") entry(AZURE_DISK, "azureDisk") entry(AZURE_FILE, "azureFile")  \
                entry(CEPHFS, "cephfs") entry(CINDER, "cinder") entry(CONFIG_MAP, "configMap") entry(CSI, "csi") entry(       \
                        DOWNWARD_API, "downwardAPI") entry(EMPTY_DIR, "emptyDir") entry(EPHEMERAL, "ephemeral")               \
                        entry(FC, "fc") entry(FLEX_VOLUME, "flexVolume") entry(FLOCKER, "flocker") entry(GCE_PERSISTENT_DISK, \
                                                                                                         "gcePersistentDisk") \
                                entry(GIT_REPO, "gitRepo") entry(GLUSTERFS, "glusterfs") entry(HOST_PATH, "hostPath") entry(  \
                                        IMAGE, "image") entry(ISCSI, "iscsi") entry(NFS, "nfs")                               \
                                        entry(PERSISTENT_VOLUME_CLAIM, "persistentVolumeClaim") entry(PHOTON_PERSISTENT_DISK, \
                                                                                                      "photonPersistentDisk") \
                                                entry(PORTWORX_VOLUME, "portworxVolume") entry(PROJECTED, "projected")        \
                                                        entry(QUOBYTE, "quobyte") entry(RBD, "rbd")                           \
                                                                entry(SCALE_IO, "scaleIO") entry(SECRET, "secret")            \
                                                                        entry(STORAGEOS, "storageos")                         \
                                                                                entry(VSPHERE_VOLUME, "vsphereVolume")

#define SOURCE_NAME(constant, json) [ND_VOLUME_##constant] = (json),
const char *const nd_pod_volume_source_names[ND_VOLUME_SOURCES] = {SOURCES(SOURCE_NAME)};

#define SOURCE_FIELD(constant, json)                                                                                          \
        {.name = (json),                                                                                                      \
         .kind = ND_SHAPE_PRESENT,                                                                                            \
         .offset = offsetof(struct nd_pod_volume, sources),                                                                   \
         .bit = ND_VOLUME_##constant},
static const struct nd_shape_field volume_fields[] = {
        ND_FIELD(nd_pod_volume, "name", name, TEXT),
        SOURCES(SOURCE_FIELD) ND_NESTED(nd_pod_volume, "flexVolume", flex, OBJECT, flex_shape),
        ND_NESTED(nd_pod_volume, "hostPath", host_path, OBJECT, host_path_shape),
        ND_NESTED(nd_pod_volume, "emptyDir", empty_dir, OBJECT, empty_dir_shape),
        ND_NESTED(nd_pod_volume, "persistentVolumeClaim", claim, OBJECT, claim_shape),
        ND_NESTED(nd_pod_volume, "projected", projected, OBJECT, projected_shape),
        {},
};
static const struct nd_shape volume_shape = ND_SHAPE_OF(nd_pod_volume, volume_fields);

static const struct nd_shape_field os_fields[] = {
        ND_FIELD(nd_pod_os, "name", name, TEXT),
        {},
};
static const struct nd_shape os_shape = ND_SHAPE_OF(nd_pod_os, os_fields);

static const struct nd_shape_field spec_fields[] = {
        ND_FIELD(nd_pod_spec, "hostNetwork", host_network, BOOL),
        ND_FIELD(nd_pod_spec, "hostPID", host_pid, BOOL),
        ND_FIELD(nd_pod_spec, "hostIPC", host_ipc, BOOL),
        ND_FIELD(nd_pod_spec, "hostUsers", host_users, SWITCH),
        ND_FIELD(nd_pod_spec, "serviceAccountName", service_account, TEXT),
        ND_FIELD(nd_pod_spec, "runtimeClassName", runtime_class, TEXT),
        ND_FIELD(nd_pod_spec, "nodeName", node_name, TEXT),
        ND_NESTED(nd_pod_spec, "os", os, OBJECT, os_shape),
        ND_NESTED(nd_pod_spec, "securityContext", security, OBJECT, pod_context_shape),
        ND_NESTED(nd_pod_spec, "initContainers", init_containers, LIST, container_shape),
        ND_NESTED(nd_pod_spec, "containers", containers, LIST, container_shape),
        ND_NESTED(nd_pod_spec, "ephemeralContainers", ephemeral_containers, LIST, container_shape),
        ND_NESTED(nd_pod_spec, "volumes", volumes, LIST, volume_shape),
        {},
};
static const struct nd_shape spec_shape = ND_SHAPE_OF(nd_pod_spec, spec_fields);

static const struct nd_shape_field metadata_fields[] = {
        ND_FIELD(nd_kube_metadata, "name", name, TEXT),
        ND_FIELD(nd_kube_metadata, "generateName", generate_name, TEXT),
        ND_FIELD(nd_kube_metadata, "namespace", namespace, TEXT),
        ND_FIELD(nd_kube_metadata, "labels", labels, PAIRS),
        ND_FIELD(nd_kube_metadata, "annotations", annotations, PAIRS),
        {},
};
const struct nd_shape nd_kube_metadata_shape = ND_SHAPE_OF(nd_kube_metadata, metadata_fields);

static const struct nd_shape_field pod_fields[] = {
        ND_NESTED(nd_pod, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        ND_NESTED(nd_pod, "spec", spec, INLINE, spec_shape),
        {},
};
const struct nd_shape nd_pod_shape = ND_SHAPE_OF(nd_pod, pod_fields);

struct nd_error *nd_pod_decode(const char *bytes, size_t length, struct nd_arena *arena, struct nd_pod *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_pod pod = {};

        nd_try(nd_json_parse(bytes, length, ND_POD_BYTES, &doc));
        nd_try(nd_shape_decode(&nd_pod_shape, yyjson_doc_get_root(doc), arena, &pod));
        *ret = pod;
        return nullptr;
}

const char *nd_pod_container_list(const struct nd_pod_spec *spec, size_t index, size_t *ret_number) {
        *ret_number = index;
        if (index < spec->init_containers.count)
                return "initContainers";
        *ret_number -= spec->init_containers.count;
        if (*ret_number < spec->containers.count)
                return "containers";
        *ret_number -= spec->containers.count;
        return "ephemeralContainers";
}

struct nd_pod_container *nd_pod_container(const struct nd_pod_spec *spec, size_t index) {
        if (index < spec->init_containers.count)
                return &spec->init_containers.items[index];
        index -= spec->init_containers.count;
        if (index < spec->containers.count)
                return &spec->containers.items[index];
        index -= spec->containers.count;
        return index < spec->ephemeral_containers.count ? &spec->ephemeral_containers.items[index] : nullptr;
}

static void *copy_of(struct nd_arena *arena, const void *memory, size_t count, size_t size) {
        void *copy;

        if (!memory)
                return nullptr;
        copy = nd_arena_alloc(arena, count, size);
        if (count > 0)
                memcpy(copy, memory, count * size);
        return copy;
}

#define COPY_OF(arena, list) copy_of((arena), (list)->items, (list)->count, sizeof *(list)->items)

static void own_contexts(struct nd_pod_container *containers, size_t count, struct nd_arena *arena) {
        for (size_t i = 0; containers && i < count; i++)
                containers[i].security = copy_of(arena, containers[i].security, 1, sizeof *containers[i].security);
}

struct nd_pod *nd_pod_copy(const struct nd_pod *pod, struct nd_arena *arena) {
        struct nd_pod *copy = nd_arena_alloc(arena, 1, sizeof *pod);
        struct nd_pod_spec *spec = &copy->spec;

        *copy = *pod;
        spec->security = copy_of(arena, spec->security, 1, sizeof *spec->security);
        spec->init_containers.items = COPY_OF(arena, &spec->init_containers);
        spec->containers.items = COPY_OF(arena, &spec->containers);
        spec->ephemeral_containers.items = COPY_OF(arena, &spec->ephemeral_containers);
        spec->volumes.items = COPY_OF(arena, &spec->volumes);
        copy->metadata.annotations.items = COPY_OF(arena, &copy->metadata.annotations);
        own_contexts(spec->init_containers.items, spec->init_containers.count, arena);
        own_contexts(spec->containers.items, spec->containers.count, arena);
        own_contexts(spec->ephemeral_containers.items, spec->ephemeral_containers.count, arena);
        return copy;
}

struct nd_pod_context *nd_pod_own_context(struct nd_pod *pod, struct nd_arena *arena) {
        if (!pod->spec.security)
                pod->spec.security = nd_arena_new(arena, struct nd_pod_context);
        return pod->spec.security;
}

struct nd_pod_container_context *nd_pod_container_own_context(struct nd_pod_container *container, struct nd_arena *arena) {
        if (!container->security)
                container->security = nd_arena_new(arena, struct nd_pod_container_context);
        return container->security;
}

bool nd_pod_is_windows(const struct nd_pod *pod) {
        return pod->spec.os && pod->spec.os->name && nd_streq(pod->spec.os->name, "windows");
}
