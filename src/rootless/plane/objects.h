/* SPDX-License-Identifier: Apache-2.0 */
/* objects.h - what a control plane of ours has besides Kubernetes' own objects
 *
 * Rights of the API server at kubelets and of the controller; the ConfigMap cluster-info and the
 * rights of bootstrap tokens, with which other nodes join. */
#pragma once

#include "rootless/plane/client.h"

/* Group of the tokens that `nodens-rootless token create` makes. */
#define PLANE_TOKEN_GROUP "system:bootstrappers:nodens-rootless"
#define PLANE_CLUSTER_INFO "/api/v1/namespaces/kube-public/configmaps/cluster-info"
#define PLANE_NAMESPACE "nodens-system"
#define PLANE_CONTROLLER_ACCOUNT "nodens-rootless-controller"

/* Creates the objects, or makes them as they should be. server and ca (PEM) are those of
 * cluster-info. */
[[nodiscard]] struct nd_error *rootless_plane_apply_objects(struct rootless_plane_client *client, const char *server,
                                                            const char *ca);
