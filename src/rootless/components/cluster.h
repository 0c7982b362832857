/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the checked settings of Kubernetes in a node, and where its programs are */
#pragma once

#include "rootless/components/cni-list.h"
#include "rootless/components/credentials.h"
#include "rootless/node/overlay-plan.h"
#include "rootless/node/settings.h"
#include "userns/range.h"

enum rootless_runtime {
        RUNTIME_NODENS,
        RUNTIME_CONTAINERD,
};

/* The bridge of the pods, without --cni. kube-proxy recognizes their traffic by it. */
#define CLUSTER_BRIDGE "nodens0"
/* Of registries, by default. */
#define CLUSTER_REGISTRY_PORTS "443"

/* A control plane of the user's own beside the node; unset for a node that joins a cluster. */
struct rootless_plane {
        char *directory; /* certificates, kubeconfigs and etcd's data; nullptr = none */
        char *sockets;   /* directory of etcd's sockets */
        char *address;   /* of the node; pods reach the API server at it */
        char *publish;   /* where the host publishes the API server, as of `ports add` */
        char *server;    /* its URL for clients on the host */
        char *listen;    /* the host's address of publish */
};

struct rootless_cluster {
        enum rootless_runtime runtime;
        const char *name;                     /* of the node: its host name */
        char *node_name;                      /* of the Node object */
        const char *node_ip;                  /* nullptr = chosen by the kubelet */
        const char *labels;                   /* nullptr = none */
        const char *pod_cidr;                 /* one network, IPv4 or IPv6 */
        uint32_t mtu;                         /* of pods; 0 = the CNI plugin's default */
        struct rootless_overlay_plan overlay; /* file nullptr = no peers */
        uint32_t offset;                      /* added to the kubelet's port */
        struct nd_strings dns;                /* addresses of the cluster's DNS service */
        uint32_t max_pods;                    /* 0 = the kubelet's default */
        struct nd_userns_range pod_ids;       /* for pods with user namespaces; count 0 = none */
        char *no_pod_ids;                     /* why there are none */
        bool taint;                           /* register the node with a taint */
        bool no_cgroups;                      /* pods have no limits */
        const char *registry_ports;           /* of the broker; nullptr = none */
        char *broker;                         /* the broker's socket; nullptr = none */
        bool server_tls_bootstrap;            /* the cluster signs its certificate */
        struct nd_strings programs;           /* directories of --programs */
        char *path;                           /* PATH of the components */
        char *cdi;                            /* a directory with CDI files; nullptr = none */
        struct nd_strings cni;                /* directories with CNI plugins, in order of search */
        struct rootless_cni_list cni_list;    /* of --cni */
        struct rootless_credentials credentials;
        struct rootless_plane plane;
        /* Stands for the host's root when programs are looked up; "" but in tests. */
        const char *machine;
};
void rootless_cluster_done(struct rootless_cluster *cluster);

/* Checks the settings and the kubeconfig of a node with config->join. The configuration must
 * outlive the result. */
[[nodiscard]] struct nd_error *rootless_cluster_resolve(const struct rootless_config *config, const char *machine,
                                                        struct rootless_cluster *ret);

/* The settings only, without the kubeconfig. */
[[nodiscard]] struct nd_error *rootless_cluster_check(const struct rootless_config *config, const char *machine,
                                                      struct rootless_cluster *ret);

/* The name of the Node object: as configured, or made of the host's name and the node's. */
[[nodiscard]] struct nd_error *rootless_cluster_node_name(const struct rootless_config *config, char **ret);

/* Finds a program in the directories of --programs, then in those of the host that the node sees.
 * package names a Debian package, for the error. */
[[nodiscard]] struct nd_error *rootless_cluster_find(const struct rootless_cluster *cluster, const char *name,
                                                     const char *package, char **ret);
/* Only in --programs; nullptr if it is not there. */
[[nodiscard]] char *rootless_cluster_find_given(const struct rootless_cluster *cluster, const char *name);
