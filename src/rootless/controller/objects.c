/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/objects.h"

#include <netinet/in.h>

#include "net/api-objects.h"

#define SOURCE_RANGES_ANNOTATION "service.beta.kubernetes.io/load-balancer-source-ranges"
#define SERVICE_NAME_LABEL "kubernetes.io/service-name"

enum { INGRESS_BYTES = 4096 };

/* ---- values ---- */

static const char *text_of(yyjson_val *object, const char *key) {
        yyjson_val *value = yyjson_obj_get(object, key);
        const char *text = yyjson_get_str(value);

        return text && !memchr(text, '\0', yyjson_get_len(value)) ? text : "";
}

static uint16_t port_of(yyjson_val *object, const char *key) {
        uint64_t number = yyjson_get_uint(yyjson_obj_get(object, key)); /* 0: something else */

        return number <= UINT16_MAX ? (uint16_t) number : 0;
}

static enum rootless_protocol protocol_of(yyjson_val *port) {
        const char *name = text_of(port, "protocol");

        return *name == '\0' || nd_streq(name, "TCP") ? PROTOCOL_TCP : nd_streq(name, "UDP") ? PROTOCOL_UDP : PROTOCOL_OTHER;
}

bool rootless_object_name_valid(const char *name) {
        size_t length = strlen(name);

        return length > 0 && length < CLUSTER_NAME_TEXT && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length &&
               name[0] != '.' && name[0] != '-';
}

/* "" is fine: not all objects have them. Long ones are cut by the printing of hostile text only. */
static bool is_word(const char *text) {
        size_t length = strlen(text);

        return length < 64 && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:.+") == length;
}

static bool read_id(yyjson_val *object, const char *kind, struct rootless_object_id *ret) {
        yyjson_val *metadata = yyjson_obj_get(object, "metadata");
        const char *name = nd_api_name(object), *namespace = nd_api_namespace(object), *uid = text_of(metadata, "uid"),
                   *created = text_of(metadata, "creationTimestamp");

        if (!rootless_object_name_valid(name) || !rootless_object_name_valid(namespace) || strlen(namespace) > 63 ||
            !is_word(uid) || !is_word(created))
                return false;
        *ret = (struct rootless_object_id) {.kind = kind,
                                            .namespace = nd_strdup(namespace),
                                            .name = nd_strdup(name),
                                            .uid = nd_strdup(uid),
                                            .created = nd_strdup(created)};
        return true;
}

void rootless_object_id_done(struct rootless_object_id *id) {
        free(id->namespace);
        free(id->name);
        free(id->uid);
        free(id->created);
        *id = (struct rootless_object_id) {};
}

struct rootless_object_id rootless_object_id_copy(const struct rootless_object_id *id) {
        return (struct rootless_object_id) {.kind = id->kind,
                                            .namespace = nd_strdup(id->namespace),
                                            .name = nd_strdup(id->name),
                                            .uid = nd_strdup(id->uid),
                                            .created = nd_strdup(id->created)};
}

char *rootless_object_text(const struct rootless_object_id *id) {
        return nd_format("%s %s/%s", id->kind, id->namespace, id->name);
}

/* ---- Services ---- */

void rootless_service_free(struct rootless_service *service) {
        if (!service)
                return;
        rootless_object_id_done(&service->id);
        free(service->version);
        free(service->ports);
        for (size_t i = 0; i < service->ingress_count; i++) {
                free(service->ingress[i]);
                free(service->ingress_ip[i]);
        }
        free(service);
}

static void read_service_ports(yyjson_val *spec, struct rootless_service *service) {
        yyjson_val *list = yyjson_obj_get(spec, "ports"), *item;
        yyjson_arr_iter each = yyjson_arr_iter_with(list);
        size_t count = yyjson_arr_size(list) < CLUSTER_OBJECT_PORTS ? yyjson_arr_size(list) : CLUSTER_OBJECT_PORTS;

        service->ports_ignored = yyjson_arr_size(list) - count;
        service->ports = nd_calloc(count > 0 ? count : 1, sizeof *service->ports);
        while (service->port_count < count && (item = yyjson_arr_iter_next(&each)))
                service->ports[service->port_count++] = (struct rootless_service_port) {
                        .protocol = protocol_of(item), .port = port_of(item, "port"), .node_port = port_of(item, "nodePort")};
}

/* A Service of one family has no node port of the other. */
static int family_of(yyjson_val *spec) {
        yyjson_val *list = yyjson_obj_get(spec, "ipFamilies");

        if (yyjson_arr_size(list) != 1)
                return 0;
        return yyjson_equals_str(yyjson_arr_get_first(list), "IPv4")   ? AF_INET
               : yyjson_equals_str(yyjson_arr_get_first(list), "IPv6") ? AF_INET6
                                                                       : 0;
}

static void read_ingress(yyjson_val *object, struct rootless_service *service) {
        yyjson_val *list = yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(object, "status"), "loadBalancer"), "ingress"), *item;
        yyjson_arr_iter each = yyjson_arr_iter_with(list);

        while (service->ingress_count < CLUSTER_INGRESS && (item = yyjson_arr_iter_next(&each))) {
                size_t length = 0;
                char *json = yyjson_val_write(item, 0, &length);

                if (json && length < INGRESS_BYTES) {
                        service->ingress_ip[service->ingress_count] = nd_strdup(text_of(item, "ip"));
                        service->ingress[service->ingress_count++] = nd_take_ptr(json);
                }
                free(json);
        }
}

static void read_load_balancer(yyjson_val *object, yyjson_val *spec, struct rootless_service *service) {
        yyjson_val *annotations = yyjson_obj_get(yyjson_obj_get(object, "metadata"), "annotations");
        yyjson_val *class = yyjson_obj_get(spec, "loadBalancerClass");

        service->is_restricted = yyjson_arr_size(yyjson_obj_get(spec, "loadBalancerSourceRanges")) > 0 ||
                                 yyjson_get_len(yyjson_obj_get(annotations, SOURCE_RANGES_ANNOTATION)) > 0;
        service->is_of_other_class = yyjson_get_len(class) > 0 && !yyjson_equals_str(class, CLUSTER_LOAD_BALANCER_CLASS);
        read_ingress(object, service);
}

struct rootless_service *rootless_service_read(yyjson_val *object) {
        yyjson_val *spec = yyjson_obj_get(object, "spec");
        bool is_load_balancer = nd_streq(text_of(spec, "type"), "LoadBalancer");
        struct rootless_object_id id = {};
        struct rootless_service *service;

        if (!is_load_balancer && !nd_streq(text_of(spec, "type"), "NodePort"))
                return nullptr;
        if (!read_id(object, "Service", &id))
                return nullptr;
        service = nd_new(struct rootless_service);
        service->id = id;
        service->version = nd_strdup(nd_api_version(object));
        service->is_load_balancer = is_load_balancer;
        service->is_local = nd_streq(text_of(spec, "externalTrafficPolicy"), "Local");
        service->family = family_of(spec);
        service->health_check_port = port_of(spec, "healthCheckNodePort");
        read_service_ports(spec, service);
        if (is_load_balancer)
                read_load_balancer(object, spec, service);
        return service;
}

/* ---- EndpointSlices ---- */

void rootless_slice_free(struct rootless_slice *slice) {
        if (!slice)
                return;
        free(slice->service);
        free(slice);
}

/* kube-proxy sends traffic to endpoints that are ready, and if a node has none of them, to those
 * that terminate and still serve. A missing condition counts as ready. */
static bool gets_traffic(yyjson_val *endpoint) {
        yyjson_val *conditions = yyjson_obj_get(endpoint, "conditions"), *ready = yyjson_obj_get(conditions, "ready");

        if (!ready || yyjson_is_null(ready) || yyjson_is_true(ready))
                return true;
        return yyjson_is_true(yyjson_obj_get(conditions, "serving")) &&
               yyjson_is_true(yyjson_obj_get(conditions, "terminating"));
}

struct rootless_slice *rootless_slice_read(yyjson_val *object, const char *node_name) {
        yyjson_val *labels = yyjson_obj_get(yyjson_obj_get(object, "metadata"), "labels"), *endpoint;
        yyjson_arr_iter each = yyjson_arr_iter_with(yyjson_obj_get(object, "endpoints"));
        const char *service = text_of(labels, SERVICE_NAME_LABEL), *namespace = nd_api_namespace(object);
        bool is_local = false;
        struct rootless_slice *slice;

        while (!is_local && (endpoint = yyjson_arr_iter_next(&each)))
                is_local = nd_streq(text_of(endpoint, "nodeName"), node_name) && gets_traffic(endpoint);
        if (!is_local || !rootless_object_name_valid(service) || !rootless_object_name_valid(namespace))
                return nullptr;
        slice = nd_new(struct rootless_slice);
        slice->service = nd_format("%s/%s", namespace, service);
        return slice;
}

/* ---- pods ---- */

void rootless_pod_free(struct rootless_pod *pod) {
        if (!pod)
                return;
        rootless_object_id_done(&pod->id);
        free(pod->ports);
        free(pod);
}

/* The API server checks hostIP; one that it would not accept asks for nothing. */
static bool read_host_ip(yyjson_val *port, struct nd_netlink_address *ret) {
        const char *text = text_of(port, "hostIP");

        *ret = (struct nd_netlink_address) {};
        return *text == '\0' || (!strchr(text, '/') && nd_netlink_address_parse(text, ret) >= 0);
}

static void read_container_ports(yyjson_val *container, struct rootless_pod *pod) {
        yyjson_arr_iter each = yyjson_arr_iter_with(yyjson_obj_get(container, "ports"));
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&each))) {
                struct rootless_host_port port = {.protocol = protocol_of(item), .port = port_of(item, "hostPort")};

                if (port.port == 0 || !read_host_ip(item, &port.address))
                        continue;
                if (pod->port_count == CLUSTER_OBJECT_PORTS) {
                        pod->ports_ignored++;
                        continue;
                }
                if (!pod->ports)
                        pod->ports = nd_calloc(CLUSTER_OBJECT_PORTS, sizeof *pod->ports);
                pod->ports[pod->port_count++] = port;
        }
}

/* Init containers that run beside the others are sidecars. */
static void read_pod_ports(yyjson_val *spec, struct rootless_pod *pod) {
        yyjson_arr_iter each = yyjson_arr_iter_with(yyjson_obj_get(spec, "containers")),
                        init = yyjson_arr_iter_with(yyjson_obj_get(spec, "initContainers"));
        yyjson_val *container;

        while ((container = yyjson_arr_iter_next(&each)))
                read_container_ports(container, pod);
        while ((container = yyjson_arr_iter_next(&init)))
                if (nd_streq(text_of(container, "restartPolicy"), "Always"))
                        read_container_ports(container, pod);
}

struct rootless_pod *rootless_pod_read(yyjson_val *object, const char *node_name) {
        yyjson_val *spec = yyjson_obj_get(object, "spec");
        struct rootless_pod *pod;

        if (!nd_streq(text_of(spec, "nodeName"), node_name) ||
            !nd_streq(text_of(yyjson_obj_get(object, "status"), "phase"), "Running"))
                return nullptr;
        pod = nd_new(struct rootless_pod);
        read_pod_ports(spec, pod);
        if (pod->port_count > 0 && read_id(object, "Pod", &pod->id))
                return pod;
        rootless_pod_free(pod);
        return nullptr;
}

/* ---- nodes ---- */

void rootless_node_info_free(struct rootless_node_info *node) {
        if (!node)
                return;
        free(node->name);
        free(node->version);
        free(node->label);
        free(node);
}

struct rootless_node_info *rootless_node_info_read(yyjson_val *object) {
        yyjson_val *label = yyjson_obj_get(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "labels"), CLUSTER_LABEL);
        yyjson_val *info = yyjson_obj_get(yyjson_obj_get(object, "status"), "nodeInfo");
        struct rootless_node_info *node;

        if (!rootless_object_name_valid(nd_api_name(object)))
                return nullptr;
        node = nd_new(struct rootless_node_info);
        node->name = nd_strdup(nd_api_name(object));
        node->version = nd_strdup(nd_api_version(object));
        node->label = yyjson_is_str(label) ? nd_strdup(yyjson_get_str(label)) : nullptr;
        node->runs_in_user_namespace = yyjson_is_true(yyjson_obj_get(info, "runningInUserNamespace"));
        return node;
}
