/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/rpc/response-pod.h"

#include "oci/store.h"

Runtime__V1__PodSandboxMetadata *cri_response_pod_metadata(struct nd_arena *memory,
                                                           const struct cri_sandbox_request *request) {
        Runtime__V1__PodSandboxMetadata *m =
                cri_response_new(memory, Runtime__V1__PodSandboxMetadata, runtime__v1__pod_sandbox_metadata__descriptor);

        m->name = request->name;
        m->uid = request->uid;
        m->namespace_ = request->namespace;
        m->attempt = request->attempt;
        return m;
}

Runtime__V1__ContainerMetadata *cri_response_container_metadata(struct nd_arena *memory,
                                                                const struct cri_container_request *request) {
        Runtime__V1__ContainerMetadata *m =
                cri_response_new(memory, Runtime__V1__ContainerMetadata, runtime__v1__container_metadata__descriptor);

        m->name = request->name;
        m->attempt = request->attempt;
        return m;
}

/* ---- sandboxes ---- */

static Runtime__V1__PodSandboxState state_of_sandbox(const struct cri_sandbox *sandbox) {
        return sandbox->state == SANDBOX_READY ? RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY
                                               : RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY;
}

Runtime__V1__PodSandbox *cri_response_sandbox(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Runtime__V1__PodSandbox *m = cri_response_new(memory, Runtime__V1__PodSandbox, runtime__v1__pod_sandbox__descriptor);
        const struct cri_sandbox_request *request = &sandbox->request;

        m->id = (char *) sandbox->id;
        m->metadata = cri_response_pod_metadata(memory, request);
        m->state = state_of_sandbox(sandbox);
        m->created_at = (int64_t) sandbox->created_at;
        m->n_labels = request->labels.count;
        m->labels = cri_response_entries(memory, &runtime__v1__pod_sandbox__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations =
                cri_response_entries(memory, &runtime__v1__pod_sandbox__annotations_entry__descriptor, &request->annotations);
        m->runtime_handler = request->runtime_handler;
        return m;
}

static Runtime__V1__IDMapping **response_id_map(struct nd_arena *memory, const struct nd_userns_map *map) {
        Runtime__V1__IDMapping **lines = nd_arena_alloc(memory, 1, sizeof *lines);

        lines[0] = cri_response_new(memory, Runtime__V1__IDMapping, runtime__v1__idmapping__descriptor);
        lines[0]->host_id = map->outside;
        lines[0]->container_id = map->inside;
        lines[0]->length = map->count;
        return lines;
}

static Runtime__V1__UserNamespace *response_users(struct nd_arena *memory, const struct cri_sandbox_request *request) {
        Runtime__V1__UserNamespace *m =
                cri_response_new(memory, Runtime__V1__UserNamespace, runtime__v1__user_namespace__descriptor);

        m->mode = RUNTIME__V1__NAMESPACE_MODE__NODE;
        if (!request->user_namespace)
                return m;
        m->mode = RUNTIME__V1__NAMESPACE_MODE__POD;
        m->n_uids = m->n_gids = 1;
        m->uids = response_id_map(memory, &request->uids);
        m->gids = response_id_map(memory, &request->gids);
        return m;
}

static Runtime__V1__LinuxPodSandboxStatus *response_namespaces(struct nd_arena *memory,
                                                               const struct cri_sandbox_request *request) {
        Runtime__V1__LinuxPodSandboxStatus *m = cri_response_new(memory, Runtime__V1__LinuxPodSandboxStatus,
                                                                 runtime__v1__linux_pod_sandbox_status__descriptor);
        Runtime__V1__NamespaceOption *options =
                cri_response_new(memory, Runtime__V1__NamespaceOption, runtime__v1__namespace_option__descriptor);

        options->network = (Runtime__V1__NamespaceMode) request->network;
        options->pid = (Runtime__V1__NamespaceMode) request->pid;
        options->ipc = (Runtime__V1__NamespaceMode) request->ipc;
        options->userns_options = response_users(memory, request);
        m->namespaces = cri_response_new(memory, Runtime__V1__Namespace, runtime__v1__namespace__descriptor);
        m->namespaces->options = options;
        return m;
}

/* Absent for a pod on the host's network: it has no address of its own, and an empty one would make
 * the kubelet recreate the pod. */
static Runtime__V1__PodSandboxNetworkStatus *response_network(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Runtime__V1__PodSandboxNetworkStatus *m;
        size_t more;

        if (sandbox->addresses.count == 0)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__PodSandboxNetworkStatus,
                             runtime__v1__pod_sandbox_network_status__descriptor);
        m->ip = sandbox->addresses.items[0];
        more = sandbox->addresses.count - 1;
        m->additional_ips = nd_arena_alloc(memory, more, sizeof *m->additional_ips);
        m->n_additional_ips = more;
        for (size_t i = 0; i < more; i++) {
                m->additional_ips[i] = cri_response_new(memory, Runtime__V1__PodIP, runtime__v1__pod_ip__descriptor);
                m->additional_ips[i]->ip = sandbox->addresses.items[i + 1];
        }
        return m;
}

Runtime__V1__PodSandboxStatus *cri_response_sandbox_status(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Runtime__V1__PodSandboxStatus *m =
                cri_response_new(memory, Runtime__V1__PodSandboxStatus, runtime__v1__pod_sandbox_status__descriptor);
        const struct cri_sandbox_request *request = &sandbox->request;

        m->id = (char *) sandbox->id;
        m->metadata = cri_response_pod_metadata(memory, request);
        m->state = state_of_sandbox(sandbox);
        m->created_at = (int64_t) sandbox->created_at;
        m->network = sandbox->state == SANDBOX_READY ? response_network(memory, sandbox) : nullptr;
        m->linux = response_namespaces(memory, request);
        m->n_labels = request->labels.count;
        m->labels = cri_response_entries(memory, &runtime__v1__pod_sandbox_status__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations = cri_response_entries(memory, &runtime__v1__pod_sandbox_status__annotations_entry__descriptor,
                                              &request->annotations);
        m->runtime_handler = request->runtime_handler;
        return m;
}

/* ---- containers ---- */

static char *response_image_id(struct nd_arena *memory, const struct cri_container *container) {
        char *text = nd_arena_alloc(memory, 1, ND_DIGEST_TEXT);

        return nd_digest_is_set(&container->image) ? (char *) nd_digest_text(&container->image, text)
                                                   : container->request.image;
}

static Runtime__V1__ImageSpec *response_image(struct nd_arena *memory, const struct cri_container_request *request) {
        Runtime__V1__ImageSpec *m = cri_response_new(memory, Runtime__V1__ImageSpec, runtime__v1__image_spec__descriptor);

        m->image = request->image;
        m->user_specified_image = request->image_by_user;
        return m;
}

static char *response_image_reference(struct nd_arena *memory, const struct cri_container *container) {
        return container->image_reference && *container->image_reference ? container->image_reference
                                                                         : response_image_id(memory, container);
}

Runtime__V1__Container *cri_response_container(struct nd_arena *memory, const struct cri_container *container) {
        Runtime__V1__Container *m = cri_response_new(memory, Runtime__V1__Container, runtime__v1__container__descriptor);
        const struct cri_container_request *request = &container->request;

        m->id = (char *) container->id;
        m->pod_sandbox_id = container->sandbox->id;
        m->metadata = cri_response_container_metadata(memory, request);
        m->image = response_image(memory, request);
        m->image_ref = response_image_reference(memory, container);
        m->image_id = response_image_id(memory, container);
        m->state = (Runtime__V1__ContainerState) cri_container_reported_state(container);
        m->created_at = (int64_t) container->created_at;
        m->n_labels = request->labels.count;
        m->labels = cri_response_entries(memory, &runtime__v1__container__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations =
                cri_response_entries(memory, &runtime__v1__container__annotations_entry__descriptor, &request->annotations);
        return m;
}

static Runtime__V1__ImageSpec *response_mounted_image(struct nd_arena *memory, const struct nd_oci_store *images,
                                                      const struct cri_mount_request *mount) {
        Runtime__V1__ImageSpec *m = cri_response_new(memory, Runtime__V1__ImageSpec, runtime__v1__image_spec__descriptor);
        const struct nd_image *image = nullptr;

        m->image = mount->image;
        nd_ignore(nd_oci_store_find(images, mount->image, &image));
        m->image_ref = image ? (char *) nd_digest_text(&image->id, nd_arena_alloc(memory, 1, ND_DIGEST_TEXT)) : mount->image;
        return m;
}

static void add_options(struct nd_arena *memory, const struct cri_mount_request *mount, Runtime__V1__Mount *m) {
        if (mount->attributes)
                m->mount_options = nd_arena_alloc(memory, CRI_MOUNT_OPTIONS, sizeof *m->mount_options);
        for (size_t i = 0; i < CRI_MOUNT_OPTIONS; i++)
                if (mount->attributes & cri_mount_options[i].attribute)
                        m->mount_options[m->n_mount_options++] = (char *) cri_mount_options[i].name;
}

static Runtime__V1__Mount *response_mount(struct nd_arena *memory, const struct nd_oci_store *images,
                                          const struct cri_mount_request *mount) {
        Runtime__V1__Mount *m = cri_response_new(memory, Runtime__V1__Mount, runtime__v1__mount__descriptor);

        m->container_path = mount->container_path;
        m->host_path = mount->host_path;
        m->readonly = mount->read_only;
        m->recursive_read_only = mount->recursive_read_only;
        m->selinux_relabel = mount->relabel;
        m->propagation = (Runtime__V1__MountPropagation) mount->propagation;
        m->image_sub_path = mount->image_subpath;
        add_options(memory, mount, m);
        if (mount->image[0])
                m->image = response_mounted_image(memory, images, mount);
        if (mount->idmapped) {
                m->n_uidmappings = m->n_gidmappings = 1;
                m->uidmappings = response_id_map(memory, &mount->uids);
                m->gidmappings = response_id_map(memory, &mount->gids);
        }
        return m;
}

static Runtime__V1__HugepageLimit **response_hugepages(struct nd_arena *memory, const struct cri_resource_request *resources) {
        Runtime__V1__HugepageLimit **limits = nd_arena_alloc(memory, resources->hugepages.count, sizeof *limits);

        for (size_t i = 0; i < resources->hugepages.count; i++) {
                limits[i] = cri_response_new(memory, Runtime__V1__HugepageLimit, runtime__v1__hugepage_limit__descriptor);
                limits[i]->page_size = resources->hugepages.items[i].page_size;
                limits[i]->limit = resources->hugepages.items[i].limit;
        }
        return limits;
}

static Runtime__V1__ContainerResources *response_resources(struct nd_arena *memory,
                                                           const struct cri_resource_request *resources) {
        Runtime__V1__ContainerResources *m =
                cri_response_new(memory, Runtime__V1__ContainerResources, runtime__v1__container_resources__descriptor);
        Runtime__V1__LinuxContainerResources *r = cri_response_new(memory, Runtime__V1__LinuxContainerResources,
                                                                   runtime__v1__linux_container_resources__descriptor);

        r->cpu_period = resources->cpu_period;
        r->cpu_quota = resources->cpu_quota;
        r->cpu_shares = resources->cpu_shares;
        r->memory_limit_in_bytes = resources->memory_limit;
        r->memory_swap_limit_in_bytes = resources->memory_swap_limit;
        r->oom_score_adj = resources->oom_score_adj;
        r->cpuset_cpus = resources->cpuset_cpus;
        r->cpuset_mems = resources->cpuset_mems;
        r->n_hugepage_limits = resources->hugepages.count;
        r->hugepage_limits = response_hugepages(memory, resources);
        r->n_unified = resources->unified.count;
        r->unified = cri_response_entries(memory, &runtime__v1__linux_container_resources__unified_entry__descriptor,
                                          &resources->unified);
        m->linux = r;
        return m;
}

static Runtime__V1__ContainerUser *response_user(struct nd_arena *memory, const struct cri_container_user *user) {
        Runtime__V1__ContainerUser *m =
                cri_response_new(memory, Runtime__V1__ContainerUser, runtime__v1__container_user__descriptor);
        Runtime__V1__LinuxContainerUser *u =
                cri_response_new(memory, Runtime__V1__LinuxContainerUser, runtime__v1__linux_container_user__descriptor);

        u->uid = user->uid;
        u->gid = user->gid;
        u->n_supplemental_groups = user->groups.count;
        u->supplemental_groups = nd_arena_alloc(memory, user->groups.count, sizeof *u->supplemental_groups);
        for (size_t i = 0; i < user->groups.count; i++)
                u->supplemental_groups[i] = user->groups.items[i];
        m->linux = u;
        return m;
}

/* The CRI numbers signals by name; request-decode-container.c has the reverse mapping. */
static Runtime__V1__Signal response_signal(int number) {
        return (Runtime__V1__Signal) cri_request_signal_to_cri(number);
}

static void response_times(const struct cri_container *container, Runtime__V1__ContainerStatus *m) {
        m->created_at = (int64_t) container->created_at;
        m->started_at = (int64_t) container->started_at;
}

static void response_end(const struct cri_container *container, Runtime__V1__ContainerStatus *m) {
        if (cri_container_reported_state(container) != container->state)
                return;
        m->reason = container->reason;
        m->message = container->message;
        if (container->state != CONTAINER_EXITED)
                return;
        m->finished_at = (int64_t) container->finished_at;
        m->exit_code = container->exit_code;
}

Runtime__V1__ContainerStatus *cri_response_container_status(struct nd_arena *memory, const struct nd_oci_store *images,
                                                            const struct cri_container *container) {
        Runtime__V1__ContainerStatus *m =
                cri_response_new(memory, Runtime__V1__ContainerStatus, runtime__v1__container_status__descriptor);
        const struct cri_container_request *request = &container->request;

        m->id = (char *) container->id;
        m->metadata = cri_response_container_metadata(memory, request);
        m->state = (Runtime__V1__ContainerState) cri_container_reported_state(container);
        response_times(container, m);
        response_end(container, m);
        m->image = response_image(memory, request);
        m->image_ref = response_image_reference(memory, container);
        m->image_id = response_image_id(memory, container);
        m->n_labels = request->labels.count;
        m->labels = cri_response_entries(memory, &runtime__v1__container_status__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations = cri_response_entries(memory, &runtime__v1__container_status__annotations_entry__descriptor,
                                              &request->annotations);
        m->n_mounts = request->mounts.count;
        m->mounts = nd_arena_alloc(memory, request->mounts.count, sizeof *m->mounts);
        for (size_t i = 0; i < request->mounts.count; i++)
                m->mounts[i] = response_mount(memory, images, &request->mounts.items[i]);
        m->log_path = container->log_path;
        m->resources = response_resources(memory, &request->resources);
        m->user = response_user(memory, &container->user);
        m->stop_signal = response_signal(container->stop_signal);
        return m;
}
