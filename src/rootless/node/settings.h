/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - settings of a node: options first, then the environment, then defaults
 *
 *      --net       NODENS_NET      pasta
 *      --mtu       NODENS_MTU      65520
 *      --data      NODENS_DATA     $XDG_DATA_HOME/nodens/NAME; none by default for `run`
 *      --bind      NODENS_BIND     nothing
 *      --devices   NODENS_DEVICES  none besides those of every node
 *      --inside    NODENS_INSIDE   no
 *      --ephemeral NODENS_EPHEMERAL no: with it there is no default of --data
 *
 * With --join (NODENS_JOIN) the node runs Kubernetes. The settings of it are checked where they are
 * used, in components/:
 *
 *      --runtime       NODENS_RUNTIME      nodens-cri
 *      --node-name     NODENS_NODE_NAME    the host's name, followed by the node's
 *      --node-ip       NODENS_NODE_IP      chosen by the kubelet
 *      --labels        NODENS_LABELS       none
 *      --taint         NODENS_TAINT        no
 *      --pod-cidr      NODENS_POD_CIDR     10.244.0.0/24
 *      --cluster-dns   NODENS_CLUSTER_DNS  10.96.0.10
 *      --max-pods      NODENS_MAX_PODS     110
 *      --programs      NODENS_PROGRAMS     none: /usr and /opt
 *      --cni           NODENS_CNI          none: a bridge with NAT
 *      --peers         NODENS_PEERS        none: pods of other nodes are not reached
 *      --offset        NODENS_OFFSET       0
 *      --cdi           NODENS_CDI          none: /etc/cdi and /var/run/cdi
 *      --registry-ports NODENS_REGISTRY_PORTS 443; none: pulls use the node's network
 *      --no-cgroups    NODENS_NO_CGROUPS   no
 *      --server-tls-bootstrap  NODENS_SERVER_TLS_BOOTSTRAP  no
 *
 * With --control-plane (NODENS_CONTROL_PLANE) the cluster is one of the user's own, and
 *
 *      --api-port      NODENS_API_PORT     127.0.0.1:6443: where its API server is published */
#pragma once

#include "base/option.h"
#include "base/text.h"
#include "rootless/network/netplan.h"

/* The highest node port stays a port. */
enum { SETTINGS_OFFSET_MAX = UINT16_MAX - 32767 };

/* As given on the command line; unset ones are nullptr, 0 or false. */
struct rootless_settings {
        const char *name;
        const char *net;
        const char *data;
        const char *bind;
        const char *devices;
        const char *cdi;
        const char *publish;
        const char *join;
        const char *runtime;
        const char *node_name;
        const char *node_ip;
        const char *labels;
        const char *pod_cidr;
        const char *cni;
        const char *cluster_dns;
        const char *programs;
        const char *peers;
        const char *registry_ports;
        const char *api_port;
        /* Of `up` only: they find the kubeconfig for join. The token is never written to a file of
         * settings. */
        const char *bootstrap;
        const char *server;
        const char *ca_cert_hash;
        const char *ca;
        uint32_t ttl; /* of `token create`, in seconds */
        uint32_t mtu;
        uint32_t max_pods;
        uint32_t offset;
        bool taint;
        bool no_cgroups;
        bool server_tls_bootstrap;
        bool inside;
        bool ephemeral;
        bool control_plane;
        bool dry_run;
        bool foreground;
        bool json;
};

/* Validated and complete. */
struct rootless_config {
        char *name;
        enum rootless_net_driver net;
        bool net_given; /* by the user */
        bool inside;    /* the node is in a container (inside.h) */
        bool ephemeral; /* the node ends with its launcher, which leaves nothing behind */
        uint32_t mtu;
        char *data;    /* canonical once created; nullptr = none */
        char *bind;    /* nullptr = none */
        char *devices; /* nullptr = none */
        /* Kubernetes in the node; unset ones are nullptr, 0 or false */
        char *join; /* absolute path of a kubeconfig; nullptr = no Kubernetes */
        char *runtime;
        char *node_name;
        char *node_ip;
        char *labels;
        char *pod_cidr;
        char *cni; /* absolute path of a network configuration list */
        char *cluster_dns;
        char *programs; /* directories, separated by colons */
        char *peers;    /* absolute path of the list of nodes; nullptr = the node has no peers */
        char *cdi;      /* a directory */
        char *registry_ports;
        char *api_port; /* [ADDRESS:]PORT */
        uint32_t max_pods;
        uint32_t offset; /* added to the host's ports of the kubelet and of Services */
        bool taint;
        bool no_cgroups;
        bool server_tls_bootstrap;
        bool control_plane; /* of its own; excludes join */
};
void rootless_config_done(struct rootless_config *config);

/* Whether Kubernetes runs in the node. */
[[nodiscard]] bool rootless_config_has_kubernetes(const struct rootless_config *config);

/* Looks up a variable; a function so that tests need not change their own environment. */
typedef const char *(*rootless_getenv)(const char *name, void *userdata);
[[nodiscard]] struct nd_error *rootless_config_resolve(const struct rootless_settings *settings, bool lasting,
                                                       rootless_getenv variable, void *userdata, struct rootless_config *ret);

/* Whether a flag is set, by an option or by the value of its variable, which may be nullptr. */
[[nodiscard]] bool rootless_settings_flag(bool option, const char *value);

/* Whether any option is given that changes the node itself. */
[[nodiscard]] bool rootless_settings_any(const struct rootless_settings *settings);

/* Formats the settings that options or variables give as a file for EnvironmentFile= of the node's
 * units, so that a node that systemd starts has them too. Empty if there are none. */
[[nodiscard]] struct nd_error *rootless_settings_format(const struct rootless_settings *settings, rootless_getenv variable,
                                                        void *userdata, struct nd_text *ret);

/* Makes the environment of commands in the node: ours, without variables that name sockets or
 * directories of the host, plus RootlessKit's three variables. The list ends with a nullptr, which
 * it counts. */
[[nodiscard]] struct nd_strings rootless_config_environment(char *const *ours, const char *name, const char *api,
                                                            const char *uid, const char *gid);
