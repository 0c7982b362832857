/* SPDX-License-Identifier: Apache-2.0 */
/* objects.h - what the controller keeps of the API server's objects
 *
 * Each function reads one object as JSON and returns nullptr for an object that asks for nothing
 * (a Service of type ClusterIP, a pod without host ports) or is not valid. Objects are made by all
 * users of the cluster: names are checked, and the number of their ports is limited. */
#pragma once

#include "base/json.h"
#include "net/api-table.h"
#include "sys/netlink.h"

enum {
        CLUSTER_OBJECT_PORTS = 256, /* of one object; more are ignored */
        CLUSTER_INGRESS = 16,       /* addresses of a load balancer */
        CLUSTER_NAME_TEXT = 254,
};

/* An object as other objects and people refer to it. */
struct rootless_object_id {
        const char *kind; /* "Service", a constant */
        char *namespace;
        char *name;
        char *uid;
        char *created; /* RFC 3339, so it sorts as text */
};
void rootless_object_id_done(struct rootless_object_id *id);
struct rootless_object_id rootless_object_id_copy(const struct rootless_object_id *id);
/* "Service default/web" */
[[nodiscard]] char *rootless_object_text(const struct rootless_object_id *id);

enum rootless_protocol { PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_OTHER };

struct rootless_service_port {
        enum rootless_protocol protocol;
        uint16_t port;
        uint16_t node_port; /* 0: none */
};

struct rootless_service {
        struct nd_api_entry entry;
        struct rootless_object_id id;
        char *version;          /* metadata.resourceVersion */
        bool is_load_balancer;  /* else NodePort */
        bool is_local;          /* externalTrafficPolicy: Local */
        bool is_restricted;     /* loadBalancerSourceRanges, or the annotation */
        bool is_of_other_class; /* loadBalancerClass names another implementation */
        int family;             /* AF_INET or AF_INET6; 0: both */
        uint16_t health_check_port;
        struct rootless_service_port *ports;
        size_t port_count;
        size_t ports_ignored;
        /* Addresses in status.loadBalancer, as JSON objects. */
        char *ingress[CLUSTER_INGRESS];
        char *ingress_ip[CLUSTER_INGRESS]; /* "" if it has a host name */
        size_t ingress_count;
};

/* An EndpointSlice with an endpoint on our node that gets traffic. */
struct rootless_slice {
        struct nd_api_entry entry;
        char *service; /* NAMESPACE/NAME */
};

struct rootless_host_port {
        enum rootless_protocol protocol;
        uint16_t port;
        struct nd_netlink_address address; /* hostIP; family 0: all */
};

struct rootless_pod {
        struct nd_api_entry entry;
        struct rootless_object_id id;
        struct rootless_host_port *ports;
        size_t port_count;
        size_t ports_ignored;
};

/* A Node: the label, and what the kubelet reports. */
struct rootless_node_info {
        struct nd_api_entry entry;
        char *name;
        char *version;
        char *label; /* of kubernetes.io/running-in-user-namespace; nullptr: none */
        bool runs_in_user_namespace;
};

#define CLUSTER_LABEL "kubernetes.io/running-in-user-namespace"
#define CLUSTER_LOAD_BALANCER_CLASS "nodens.io/rootless"

[[nodiscard]] struct rootless_service *rootless_service_read(yyjson_val *object);
[[nodiscard]] struct rootless_slice *rootless_slice_read(yyjson_val *object, const char *node_name);
[[nodiscard]] struct rootless_pod *rootless_pod_read(yyjson_val *object, const char *node_name);
[[nodiscard]] struct rootless_node_info *rootless_node_info_read(yyjson_val *object);

void rootless_service_free(struct rootless_service *service);
void rootless_slice_free(struct rootless_slice *slice);
void rootless_pod_free(struct rootless_pod *pod);
void rootless_node_info_free(struct rootless_node_info *node);

/* Whether a text is a name of Kubernetes: lower case letters, digits, '-' and '.'. */
[[nodiscard]] bool rootless_object_name_valid(const char *name);
