/* SPDX-License-Identifier: Apache-2.0 */
/* pods.c - nodens.v1.Node: the pods, for `nodens pods` and `nodens inspect` */
#include <nodens.pb-c.h>
#include <string.h>

#include "cri/core/parts.h"
#include "cri/core/paths.h"
#include "cri/core/record-format.h"
#include "cri/namespace/namespaces.h"
#include "cri/pod/verify.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/response.h"

/* ---- common ---- */

static void count_checks(const struct cri_container *container, Nodens__V1__ContainerEntry *m) {
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

        if (container->checks_json)
                cri_verify_parse(container->checks_json, &checks);
        nd_vector_each (check, &checks) {
                m->checks_passed += check->result == VERIFY_PASSED;
                m->checks_failed += check->result == VERIFY_FAILED;
        }
}

static Nodens__V1__ContainerEntry *response_container(struct nd_arena *memory, const struct cri_container *container) {
        Nodens__V1__ContainerEntry *m =
                cri_response_new(memory, Nodens__V1__ContainerEntry, nodens__v1__container_entry__descriptor);
        const struct cri_container_request *request = &container->request;

        m->id = (char *) container->id;
        m->name = request->name;
        m->attempt = request->attempt;
        m->state = (char *) cri_container_state_name(container->state);
        m->image = request->image_by_user && *request->image_by_user ? request->image_by_user : request->image;
        m->exit_code = container->exit_code;
        m->reason = container->reason;
        m->message = container->message;
        m->pid = container->state == CONTAINER_RUNNING ? container->pid : 0;
        m->created_at = container->created_at;
        m->started_at = container->started_at;
        m->finished_at = container->finished_at;
        count_checks(container, m);
        return m;
}

static Nodens__V1__IdRange *response_range(struct nd_arena *memory, const struct nd_userns_map *map) {
        Nodens__V1__IdRange *m = cri_response_new(memory, Nodens__V1__IdRange, nodens__v1__id_range__descriptor);

        m->container = map->inside;
        m->host = map->outside;
        m->count = map->count;
        return m;
}

static Nodens__V1__PodEntry *response_pod(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Nodens__V1__PodEntry *m = cri_response_new(memory, Nodens__V1__PodEntry, nodens__v1__pod_entry__descriptor);
        const struct cri_sandbox_request *request = &sandbox->request;

        m->id = (char *) sandbox->id;
        m->namespace_ = request->namespace;
        m->name = request->name;
        m->uid = request->uid;
        m->attempt = request->attempt;
        m->state = (char *) cri_sandbox_state_name(sandbox->state);
        m->created_at = sandbox->created_at;
        m->user_namespace = request->user_namespace;
        if (request->user_namespace) {
                m->uids = response_range(memory, &request->uids);
                m->gids = response_range(memory, &request->gids);
        }
        m->host_network = request->network == NAMESPACE_NODE;
        m->n_addresses = sandbox->addresses.count;
        m->addresses = sandbox->addresses.items;
        m->containers = nd_arena_alloc(memory, sandbox->containers.count, sizeof *m->containers);
        nd_vector_each (container, &sandbox->containers) {
                if (cri_container_is_shown(*container))
                        m->containers[m->n_containers++] = response_container(memory, *container);
        }
        return m;
}

static void handle_pods(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                        void *userdata) {
        Nodens__V1__PodsAnswer answer = NODENS__V1__PODS_ANSWER__INIT;
        const struct cri_parts *parts = userdata;
        const struct nd_map_slot *slot;
        nd_autoarena struct nd_arena memory = {};

        answer.pods = nd_arena_alloc(&memory, parts->pods.sandboxes.count, sizeof *answer.pods);
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));)
                if (cri_sandbox_is_shown(slot->value))
                        answer.pods[answer.n_pods++] = response_pod(&memory, slot->value);
        answer.status_asked_at = parts->status_asked;
        cri_response_with(call, &answer.base);
}

/* ---- one pod ---- */

static void add_namespaces(struct nd_arena *memory, const struct cri_parts *parts, const struct cri_sandbox *sandbox,
                           Nodens__V1__PodDetail *m) {
        m->namespaces = nd_arena_alloc(memory, POD_NAMESPACES, sizeof *m->namespaces);
        for (enum cri_pod_namespace which = 0; which < POD_NAMESPACES; which++) {
                Nodens__V1__NamespaceEntry *entry =
                        cri_response_new(memory, Nodens__V1__NamespaceEntry, nodens__v1__namespace_entry__descriptor);
                nd_autofree char *path = nullptr;

                entry->kind = (char *) cri_namespaces_name(which);
                if (cri_namespaces_owned(&sandbox->request, which)) {
                        path = sandbox->state == SANDBOX_READY
                                       ? cri_namespaces_path(&parts->config, parts->pins, sandbox, which)
                                       : nullptr;
                        entry->path = path ? nd_arena_strdup(memory, path) : (char *) "gone";
                }
                m->namespaces[m->n_namespaces++] = entry;
        }
}

static void add_mounts(struct nd_arena *memory, const struct cri_container *container, Nodens__V1__ContainerDetail *m) {
        static const char *const propagations[] = {
                [MOUNT_PRIVATE] = "private", [MOUNT_HOST_TO_CONTAINER] = "slave", [MOUNT_BIDIRECTIONAL] = "shared"};
        const struct cri_container_request *request = &container->request;

        m->mounts = nd_arena_alloc(memory, request->mounts.count, sizeof *m->mounts);
        for (size_t i = 0; i < request->mounts.count; i++) {
                const struct cri_mount_request *mount = &request->mounts.items[i];
                struct cri_mount_mapping mapping = cri_container_mapping(container, i);
                Nodens__V1__MountEntry *entry =
                        cri_response_new(memory, Nodens__V1__MountEntry, nodens__v1__mount_entry__descriptor);

                entry->container_path = mount->container_path;
                entry->host_path = mount->host_path;
                entry->image = mount->image;
                entry->read_only = mount->read_only;
                entry->recursive = mount->recursive_read_only;
                entry->idmapped = mapping.how == MAPPING_UNKNOWN ? mount->idmapped : mapping.how == MAPPING_IDMAPPED;
                entry->mapping = (char *) cri_mapping_name(mapping.how);
                entry->filesystem = nd_arena_strdup(memory, mapping.filesystem);
                entry->propagation = (char *) propagations[mount->propagation];
                m->mounts[m->n_mounts++] = entry;
        }
}

static void add_checks(struct nd_arena *memory, const char *checks_json, Nodens__V1__ContainerDetail *m) {
        static const char *const results[] = {
                [VERIFY_PASSED] = "passed", [VERIFY_FAILED] = "failed", [VERIFY_UNKNOWN] = "unknown"};
        nd_cleanup(cri_verify_checks_done) struct cri_verify_checks checks = {};

        cri_verify_parse(checks_json ?: "", &checks);
        m->checks = nd_arena_alloc(memory, checks.count, sizeof *m->checks);
        nd_vector_each (check, &checks) {
                Nodens__V1__CheckEntry *entry =
                        cri_response_new(memory, Nodens__V1__CheckEntry, nodens__v1__check_entry__descriptor);

                entry->name = nd_arena_strdup(memory, check->name);
                entry->result = (char *) results[check->result];
                entry->found = nd_arena_strdup(memory, check->text);
                m->checks[m->n_checks++] = entry;
        }
}

static Nodens__V1__ContainerDetail *response_container_detail(struct nd_arena *memory, const struct cri_parts *parts,
                                                              const struct cri_container *container) {
        Nodens__V1__ContainerDetail *m =
                cri_response_new(memory, Nodens__V1__ContainerDetail, nodens__v1__container_detail__descriptor);
        nd_autofree char *bundle = cri_path_of_container(&parts->config, container);

        m->container = response_container(memory, container);
        m->uid = container->user.uid;
        m->gid = container->user.gid;
        m->n_groups = container->user.groups.count;
        m->groups = container->user.groups.items;
        m->privileged = container->request.privileged;
        m->cgroup = container->cgroup;
        m->bundle = nd_arena_strdup(memory, bundle);
        m->log = container->log_path;
        m->image_id = (char *) nd_digest_text(&container->image, nd_arena_alloc(memory, 1, ND_DIGEST_TEXT));
        add_mounts(memory, container, m);
        add_checks(memory, container->checks_json, m);
        return m;
}

static Nodens__V1__CheckEntry *response_network(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Nodens__V1__CheckEntry *m;

        if (!sandbox->network_check)
                return nullptr;
        m = cri_response_new(memory, Nodens__V1__CheckEntry, nodens__v1__check_entry__descriptor);
        m->name = (char *) "network";
        m->result = (char *) (sandbox->network_check[0] ? "failed" : "passed");
        m->found = sandbox->network_check;
        return m;
}

static Nodens__V1__PodDetail *response_pod_detail(struct nd_arena *memory, const struct cri_parts *parts,
                                                  const struct cri_sandbox *sandbox) {
        Nodens__V1__PodDetail *m = cri_response_new(memory, Nodens__V1__PodDetail, nodens__v1__pod_detail__descriptor);
        nd_autofree char *directory = cri_path_of_sandbox(&parts->config, sandbox->id);

        m->pod = response_pod(memory, sandbox);
        add_namespaces(memory, parts, sandbox, m);
        m->cgroup_parent = sandbox->request.cgroup_parent;
        m->directory = nd_arena_strdup(memory, directory);
        m->this_boot = sandbox->this_boot;
        m->network = response_network(memory, sandbox);
        m->containers = nd_arena_alloc(memory, sandbox->containers.count, sizeof *m->containers);
        nd_vector_each (container, &sandbox->containers) {
                if (cri_container_is_shown(*container))
                        m->containers[m->n_containers++] = response_container_detail(memory, parts, *container);
        }
        return m;
}

/* Matches a name, with or without its namespace, or a pod's UID, as shown by kubectl. */
static bool is_called(const struct cri_sandbox *sandbox, const char *text) {
        const struct cri_sandbox_request *request = &sandbox->request;
        const char *slash = strchr(text, '/');

        if (!slash)
                return nd_streq(request->name, text) || nd_streq(request->uid, text);
        return strlen(request->namespace) == (size_t) (slash - text) &&
               strncmp(request->namespace, text, (size_t) (slash - text)) == 0 && nd_streq(request->name, slash + 1);
}

static void handle_inspect(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__inspect_request__descriptor, bytes, length);
        Nodens__V1__InspectAnswer answer = NODENS__V1__INSPECT_ANSWER__INIT;
        const struct cri_parts *parts = userdata;
        nd_autoerror struct nd_error *error = nullptr;
        struct cri_sandbox *by_id = nullptr;
        const struct nd_map_slot *slot;
        nd_autoarena struct nd_arena memory = {};
        const char *pod;

        if (!request)
                return;
        pod = ((const Nodens__V1__InspectRequest *) request)->pod;
        answer.pods = nd_arena_alloc(&memory, parts->pods.sandboxes.count + 1, sizeof *answer.pods);
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));)
                if (cri_sandbox_is_shown(slot->value) && is_called(slot->value, pod))
                        answer.pods[answer.n_pods++] = response_pod_detail(&memory, parts, slot->value);
        if (answer.n_pods == 0) {
                error = cri_pod_table_find_sandbox(&parts->pods, pod, &by_id);
                if (by_id)
                        answer.pods[answer.n_pods++] = response_pod_detail(&memory, parts, by_id);
        }
        if (answer.n_pods > 0)
                cri_response_with(call, &answer.base);
        else if (nd_error_code(error) == ND_NOT_FOUND)
                nd_grpc_call_finish(call, nd_error_new(ND_NOT_FOUND, 0, "no pod with name, UID or sandbox ID '%s'", pod));
        else
                nd_grpc_call_finish(call, nd_take_ptr(error));
}

const struct nd_grpc_method cri_rpc_pods_methods[] = {
        {"/nodens.v1.Node/Pods", handle_pods},
        {"/nodens.v1.Node/Inspect", handle_inspect},
        {},
};
