/* SPDX-License-Identifier: Apache-2.0 */
/* control-plane.h - a control plane of the user's own beside a node: stock etcd, kube-apiserver,
 * kube-controller-manager and kube-scheduler
 *
 * They run with the node's network, so that pods reach the API server and the API server reaches
 * kubelet and pods, but outside of its other namespaces (outside.h): root of the node sees neither
 * their files nor their processes. etcd listens on a socket in the node's directory, which only the
 * user can enter and the node does not see.
 *
 *      DATA/control-plane/             0700, not in the node
 *              ca.crt, ca.key          and other certificates (plane/certificates.h)
 *              admin.kubeconfig        for the user
 *              node.kubeconfig         of kubelet, kube-proxy and the controller, as of --join
 *              etcd/                   the cluster's objects */
#pragma once

#include "rootless/components/cluster.h"
#include "rootless/core/node.h"

#define CONTROL_PLANE_DIRECTORY "control-plane"
#define CONTROL_PLANE_ADMIN "admin.kubeconfig"
#define CONTROL_PLANE_NODE "node.kubeconfig"
#define CONTROL_PLANE_PROGRAM "nodens-rootless-plane"
#define CONTROL_PLANE_PORT "6443"
/* Network of Services, and its first address, which the API server has. */
#define CONTROL_PLANE_SERVICES "10.96.0.0/16"
#define CONTROL_PLANE_SERVICE "10.96.0.1"

/* Decides on addresses and paths. The credentials stay empty texts. */
[[nodiscard]] struct nd_error *rootless_control_plane_plan(const struct rootless_config *config,
                                                           const struct rootless_node *node, struct rootless_cluster *cluster);

/* Makes and renews the certificates, in a process of its own: the node's init is a clone of this
 * one, and must not have the authority's key in its memory. Reads the node's credentials then. */
[[nodiscard]] struct nd_error *rootless_control_plane_prepare(struct rootless_cluster *cluster);

/* Finds the cluster of a bootstrap token (plane/discovery.h) and writes the kubeconfig for --join,
 * in the node's data directory. The token is never an argument of a process. */
struct rootless_bootstrap {
        char *token;
        const char *server;
        const char *ca_cert_hash;
        const char *ca;
};
#define BOOTSTRAP_DIRECTORY "join"
[[nodiscard]] struct nd_error *rootless_bootstrap_discover(const struct rootless_bootstrap *bootstrap, const char *data,
                                                           char **ret_kubeconfig);

/* Adds the directory of this program to config->programs if nodens-cri is beside it and the node
 * does not have it anyway: an archive that was unpacked in a home directory. */
void rootless_programs_add_own(struct rootless_config *config);

/* Path of a program of ours that is beside this one, as in an archive that was unpacked in a home
 * directory, or in the place of the package. */
[[nodiscard]] char *rootless_program_beside(const char *name);
