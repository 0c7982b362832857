/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/request-decode.h"

#include <string.h>

#include "cri/core/pod-table.h"
#include "cri/core/request-pieces.h"
#include "net/protobuf.h"
#include "sys/cgroup.h"

/* ---- fields ---- */

struct nd_error *cri_decode_text(const char *what, const char *text, size_t ceiling, char **ret) {
        size_t length = text ? strlen(text) : 0;

        if (length > ceiling)
                return nd_error_new(ND_INVALID, 0, "%s is too long: %zu bytes, at most %zu", what, length, ceiling);
        *ret = nd_strdup(text ?: "");
        return nullptr;
}

struct nd_error *cri_decode_path(const char *what, const char *text, bool may_be_empty, char **ret) {
        if (!text || (text[0] == '\0' ? !may_be_empty : text[0] != '/'))
                return nd_error_new(ND_INVALID, 0, "%s must be an absolute path: '%s'", what, text ?: "");
        return cri_decode_text(what, text, REQUEST_PATH, ret);
}

bool cri_decode_climbs(const char *path) {
        for (const char *at = path; at; at = strchr(at, '/')) {
                at += *at == '/';
                if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
                        return true;
        }
        return false;
}

struct nd_error *cri_decode_count(const char *what, size_t count) {
        if (count > REQUEST_LIST)
                return nd_error_new(ND_INVALID, 0, "%s has too many entries: %zu, at most %d", what, count, REQUEST_LIST);
        return nullptr;
}

struct nd_error *cri_decode_strings(const char *what, char *const *texts, size_t count, size_t ceiling,
                                    struct nd_strings *ret) {
        nd_try(cri_decode_count(what, count));
        for (size_t i = 0; i < count; i++) {
                char *copy = nullptr;

                nd_try(cri_decode_text(what, texts[i], ceiling, &copy));
                nd_vector_push(ret, copy);
        }
        return nullptr;
}

struct nd_error *cri_decode_pair(const char *what, const char *key, const char *value, size_t ceiling, struct cri_pairs *ret) {
        nd_autofree char *key_copy = nullptr;
        char *value_copy = nullptr;

        nd_try(cri_decode_text(what, key, REQUEST_NAME, &key_copy));
        nd_try(cri_decode_text(what, value, ceiling, &value_copy));
        nd_vector_push(ret, ((struct cri_pair) {.key = nd_take_ptr(key_copy), .value = value_copy}));
        return nullptr;
}

struct nd_error *cri_decode_id_map(const char *what, Runtime__V1__IDMapping *const *lines, size_t count,
                                   struct nd_userns_map *ret) {
        const Runtime__V1__IDMapping *line;

        if (count != 1)
                return nd_error_new(ND_INVALID, 0, "%s has %zu lines; exactly one is required", what, count);
        line = lines[0];
        if (line->container_id != 0)
                return nd_error_new(ND_INVALID, 0, "%s begins at %u; it must begin at 0", what, line->container_id);
        if (line->length == 0)
                return nd_error_new(ND_INVALID, 0, "%s is empty", what);
        if (line->host_id == 0)
                return nd_error_new(ND_INVALID, 0, "%s maps 0 to the host's root", what);
        if (line->length > UINT32_MAX - line->host_id)
                return nd_error_new(ND_INVALID, 0, "%s exceeds the range of IDs: %u from %u on", what, line->length,
                                    line->host_id);
        *ret = (struct nd_userns_map) {.outside = line->host_id, .count = line->length};
        return nullptr;
}

static struct nd_error *take_users(const Runtime__V1__UserNamespace *users, struct cri_decode_namespaces *wanted) {
        if (!users || users->mode == RUNTIME__V1__NAMESPACE_MODE__NODE)
                return nullptr;
        if (users->mode != RUNTIME__V1__NAMESPACE_MODE__POD)
                return nd_error_new(ND_INVALID, 0, "invalid user namespace mode %d: only POD and NODE are allowed",
                                    (int) users->mode);
        wanted->user_namespace = true;
        nd_try(cri_decode_id_map("the map of user IDs", users->uids, users->n_uids, &wanted->uids));
        return cri_decode_id_map("the map of group IDs", users->gids, users->n_gids, &wanted->gids);
}

static struct nd_error *take_mode(const char *what, Runtime__V1__NamespaceMode mode, unsigned allowed,
                                  enum cri_namespace_mode *ret) {
        if ((int) mode < 0 || (int) mode > NAMESPACE_TARGET || !(allowed & (1u << mode)))
                return nd_error_new(ND_INVALID, 0, "invalid %s namespace mode %d", what, (int) mode);
        *ret = (enum cri_namespace_mode) mode;
        return nullptr;
}

struct nd_error *cri_decode_namespaces(const Runtime__V1__NamespaceOption *options, struct cri_decode_namespaces *ret) {
        constexpr unsigned pod_or_node = 1u << NAMESPACE_POD | 1u << NAMESPACE_NODE;
        struct cri_decode_namespaces wanted = {};

        if (options) {
                nd_try(take_mode("network", options->network, pod_or_node, &wanted.network));
                nd_try(take_mode("pid", options->pid, ~0u, &wanted.pid));
                nd_try(take_mode("ipc", options->ipc, pod_or_node, &wanted.ipc));
                nd_try(take_users(options->userns_options, &wanted));
        }
        if (wanted.user_namespace && (wanted.pid == NAMESPACE_NODE || wanted.ipc == NAMESPACE_NODE))
                return nd_error_new(ND_INVALID, 0, "a pod with a user namespace cannot use the node's %s namespace",
                                    wanted.pid == NAMESPACE_NODE ? "pid" : "ipc");
        *ret = wanted;
        return nullptr;
}

static struct nd_error *take_hugepages(const Runtime__V1__LinuxContainerResources *r, struct cri_resource_request *ret) {
        nd_try(cri_decode_count("hugepage_limits", r->n_hugepage_limits));
        for (size_t i = 0; i < r->n_hugepage_limits; i++) {
                struct cri_hugepage_limit limit = {.limit = r->hugepage_limits[i]->limit};

                nd_try(cri_decode_text("page_size", r->hugepage_limits[i]->page_size, REQUEST_NAME, &limit.page_size));
                nd_vector_push(&ret->hugepages, limit);
        }
        return nullptr;
}

struct nd_error *cri_decode_resources(const Runtime__V1__LinuxContainerResources *r, struct cri_resource_request *ret) {
        if (!r) {
                ret->cpuset_cpus = nd_strdup("");
                ret->cpuset_mems = nd_strdup("");
                return nullptr;
        }
        ret->cpu_period = r->cpu_period;
        ret->cpu_quota = r->cpu_quota;
        ret->cpu_shares = r->cpu_shares;
        ret->memory_limit = r->memory_limit_in_bytes;
        ret->memory_swap_limit = r->memory_swap_limit_in_bytes;
        ret->oom_score_adj = r->oom_score_adj;
        nd_try(cri_decode_text("cpuset_cpus", r->cpuset_cpus, REQUEST_PATH, &ret->cpuset_cpus));
        nd_try(cri_decode_text("cpuset_mems", r->cpuset_mems, REQUEST_PATH, &ret->cpuset_mems));
        nd_try(take_hugepages(r, ret));
        return piece_pairs("unified", r->unified, r->n_unified, REQUEST_PAIR_VALUE, &ret->unified);
}

/* ---- sandbox ---- */

static struct nd_error *take_metadata(const Runtime__V1__PodSandboxMetadata *metadata, struct cri_sandbox_request *ret) {
        if (!metadata || !metadata->name[0] || !metadata->uid[0] || !metadata->namespace_[0])
                return nd_error_new(ND_INVALID, 0, "the pod has no name, namespace or uid");
        nd_try(cri_decode_text("the pod's name", metadata->name, REQUEST_NAME, &ret->name));
        nd_try(cri_decode_text("the pod's uid", metadata->uid, REQUEST_NAME, &ret->uid));
        nd_try(cri_decode_text("the pod's namespace", metadata->namespace_, REQUEST_NAME, &ret->namespace));
        /* CNI_ARGS joins arguments with these, so that CNI could neither add nor delete the pod. */
        if (strpbrk(ret->name, ";=") || strpbrk(ret->uid, ";=") || strpbrk(ret->namespace, ";="))
                return nd_error_new(ND_INVALID, 0, "name, namespace and uid of a pod must not contain ';' or '='");
        ret->attempt = metadata->attempt;
        return nullptr;
}

static struct nd_error *take_dns(const Runtime__V1__DNSConfig *dns, struct cri_sandbox_request *ret) {
        if (!dns)
                return nullptr;
        ret->has_dns = true;
        nd_try(cri_decode_strings("dns_config.servers", dns->servers, dns->n_servers, REQUEST_NAME, &ret->dns_servers));
        nd_try(cri_decode_strings("dns_config.searches", dns->searches, dns->n_searches, REQUEST_NAME, &ret->dns_searches));
        return cri_decode_strings("dns_config.options", dns->options, dns->n_options, REQUEST_NAME, &ret->dns_options);
}

static struct nd_error *take_port(const Runtime__V1__PortMapping *mapping, struct cri_sandbox_request *ret) {
        struct cri_port_request port = {};

        if (mapping->host_port == 0)
                return nullptr;
        if (mapping->host_port < 0 || mapping->host_port > UINT16_MAX || mapping->container_port <= 0 ||
            mapping->container_port > UINT16_MAX)
                return nd_error_new(ND_INVALID, 0,
                                    "invalid port mapping from host port %d to pod port %d: must be between 1 and 65535",
                                    mapping->host_port, mapping->container_port);
        if ((int) mapping->protocol < PORT_TCP || (int) mapping->protocol > PORT_SCTP)
                return nd_error_new(ND_INVALID, 0, "host port %d has unknown protocol %d", mapping->host_port,
                                    (int) mapping->protocol);
        port.protocol = (typeof(port.protocol)) mapping->protocol;
        port.container = (uint16_t) mapping->container_port;
        port.host = (uint16_t) mapping->host_port;
        nd_try(cri_decode_text("a port's host_ip", mapping->host_ip, REQUEST_NAME, &port.address));
        nd_vector_push(&ret->ports, port);
        return nullptr;
}

static struct nd_error *take_ports(const Runtime__V1__PodSandboxConfig *config, struct cri_sandbox_request *ret) {
        nd_try(cri_decode_count("port_mappings", config->n_port_mappings));
        for (size_t i = 0; i < config->n_port_mappings; i++)
                nd_try(take_port(config->port_mappings[i], ret));
        return nullptr;
}

static struct nd_error *take_security(const Runtime__V1__LinuxSandboxSecurityContext *security,
                                      struct cri_sandbox_request *ret) {
        struct cri_decode_namespaces wanted = {};

        nd_try(cri_decode_namespaces(security ? security->namespace_options : nullptr, &wanted));
        if (wanted.pid == NAMESPACE_TARGET)
                return nd_error_new(ND_INVALID, 0, "invalid PID namespace mode of a pod: TARGET is for containers");
        ret->network = wanted.network;
        ret->pid = wanted.pid;
        ret->ipc = wanted.ipc;
        ret->user_namespace = wanted.user_namespace;
        ret->uids = wanted.uids;
        ret->gids = wanted.gids;
        ret->privileged = security && security->privileged;
        if (security && security->selinux_options)
                return cri_decode_text("SELinux level", security->selinux_options->level, REQUEST_NAME, &ret->selinux_level);
        return nullptr;
}

/* The kubelet sends a path. A name without a slash is a slice, placed by systemd's naming rule,
 * or a child of the root cgroup. */
static struct nd_error *take_cgroup_parent(const char *given, char **ret) {
        nd_autofree char *parent = nullptr, *slice = nullptr;

        nd_try(cri_decode_text("cgroup_parent", given, REQUEST_PATH, &parent));
        if (cri_decode_climbs(parent))
                return nd_error_new(ND_INVALID, 0, "cgroup_parent '%s' contains '..'", parent);
        if (*parent == '/' || *parent == '\0') {
                *ret = nd_take_ptr(parent);
                return nullptr;
        }
        slice = nd_cgroup_slice(parent);
        *ret = slice ? nd_take_ptr(slice) : nd_format("/%s", parent);
        return nullptr;
}

static struct nd_error *take_linux_pod(const Runtime__V1__LinuxPodSandboxConfig *config, struct cri_sandbox_request *ret) {
        nd_try(take_cgroup_parent(config ? config->cgroup_parent : "", &ret->cgroup_parent));
        if (config)
                nd_try(piece_pairs("sysctls", config->sysctls, config->n_sysctls, REQUEST_PAIR_VALUE, &ret->sysctls));
        return take_security(config ? config->security_context : nullptr, ret);
}

static struct nd_error *take_sandbox(const Runtime__V1__RunPodSandboxRequest *message, struct cri_sandbox_request *ret) {
        const Runtime__V1__PodSandboxConfig *config = message->config;

        if (!config)
                return nd_error_new(ND_INVALID, 0, "the request has no config");
        nd_try(take_metadata(config->metadata, ret));
        nd_try(cri_decode_text("hostname", config->hostname, REQUEST_NAME, &ret->hostname));
        nd_try(cri_decode_path("log_directory", config->log_directory, true, &ret->log_directory));
        nd_try(take_dns(config->dns_config, ret));
        nd_try(take_ports(config, ret));
        nd_try(piece_pairs("labels", config->labels, config->n_labels, REQUEST_TEXT, &ret->labels));
        nd_try(piece_pairs("annotations", config->annotations, config->n_annotations, REQUEST_TEXT, &ret->annotations));
        nd_try(take_linux_pod(config->linux, ret));
        return cri_decode_text("runtime_handler", message->runtime_handler, REQUEST_NAME, &ret->runtime_handler);
}

static void message_done(ProtobufCMessage **message) {
        nd_protobuf_free(*message);
}
#define autofree_message nd_cleanup(message_done)

struct nd_error *cri_request_decode_sandbox(const char *bytes, size_t length, struct cri_sandbox_request *ret) {
        nd_cleanup(cri_sandbox_request_done) struct cri_sandbox_request request = {};
        autofree_message ProtobufCMessage *message = nullptr;

        nd_try(nd_protobuf_unpack(&runtime__v1__run_pod_sandbox_request__descriptor, bytes, length, &message));
        nd_try(take_sandbox((const Runtime__V1__RunPodSandboxRequest *) message, &request));
        *ret = nd_take(request, (struct cri_sandbox_request) {});
        return nullptr;
}

struct nd_error *cri_request_decode_update(const char *bytes, size_t length, char **ret_container_id,
                                           struct cri_resource_request *ret) {
        nd_cleanup(cri_resource_request_done) struct cri_resource_request resources = {};
        const Runtime__V1__UpdateContainerResourcesRequest *update;
        autofree_message ProtobufCMessage *message = nullptr;

        nd_try(nd_protobuf_unpack(&runtime__v1__update_container_resources_request__descriptor, bytes, length, &message));
        update = (const Runtime__V1__UpdateContainerResourcesRequest *) message;
        nd_try(cri_decode_resources(update->linux, &resources));
        nd_try(cri_decode_text("container_id", update->container_id, REQUEST_NAME, ret_container_id));
        *ret = nd_take(resources, (struct cri_resource_request) {});
        return nullptr;
}

/* ---- checks against existing objects ---- */

static bool overlap(const struct nd_userns_map *a, const struct nd_userns_map *b) {
        return a->outside < (uint64_t) b->outside + b->count && b->outside < (uint64_t) a->outside + a->count;
}

static struct nd_error *check_beside(const struct cri_sandbox *other, const struct cri_sandbox_request *request) {
        const struct cri_sandbox_request *its = &other->request;

        if (nd_streq(its->uid, request->uid)) {
                if (its->attempt != request->attempt || !nd_streq(its->name, request->name))
                        return nullptr;
                return nd_error_new(ND_EXISTS, 0, "attempt %u already exists as pod sandbox %s", its->attempt, other->id);
        }
        if (!request->user_namespace || !its->user_namespace ||
            (!overlap(&its->uids, &request->uids) && !overlap(&its->gids, &request->gids)))
                return nullptr;
        return nd_error_new(ND_INVALID, 0,
                            "IDs %u to %u are in use by pod %s/%s (uid %s), which still exists: two pods with the same IDs "
                            "would be the same user to the kernel",
                            request->uids.outside, request->uids.outside + request->uids.count - 1, its->namespace, its->name,
                            its->uid);
}

struct nd_error *cri_request_check_sandbox(const struct cri_pod_table *pods, const struct cri_sandbox_request *request) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&pods->sandboxes, &at));) {
                const struct cri_sandbox *other = slot->value;

                if (other->state == SANDBOX_READY || other->state == SANDBOX_NEW)
                        nd_try(check_beside(other, request));
        }
        return nullptr;
}

static bool same_map(const struct nd_userns_map *a, const struct nd_userns_map *b) {
        return a->inside == b->inside && a->outside == b->outside && a->count == b->count;
}

struct nd_error *cri_request_check_container(const struct cri_sandbox_request *sandbox,
                                             const struct cri_container_request *request) {
        if (sandbox->user_namespace != request->user_namespace ||
            (sandbox->user_namespace &&
             (!same_map(&sandbox->uids, &request->uids) || !same_map(&sandbox->gids, &request->gids))))
                return nd_error_new(ND_INVALID, 0, "the container's user namespace differs from its pod's");
        if (request->privileged && !sandbox->privileged)
                return nd_error_new(ND_INVALID, 0, "a privileged container needs a privileged pod sandbox");
        return nullptr;
}
