/* SPDX-License-Identifier: Apache-2.0 */
/* methods.h - tables of RPCs
 *
 * The handlers alone convert to and from protobuf. A handler decodes its request, calls the parts
 * of the runtime, which are its userdata, and responds at once or through a pending call. */
#pragma once

#include "net/grpc-server.h"

extern const struct nd_grpc_method cri_rpc_image_methods[]; /* runtime.v1.ImageService */
/* runtime.v1.RuntimeService: the node */
extern const struct nd_grpc_method cri_rpc_runtime_methods[];
extern const struct nd_grpc_method cri_rpc_sandbox_methods[];   /* pod sandboxes */
extern const struct nd_grpc_method cri_rpc_container_methods[]; /* containers */
extern const struct nd_grpc_method cri_rpc_exec_methods[];      /* exec, attach, port-forward */
extern const struct nd_grpc_method cri_rpc_stats_methods[];     /* stats and metrics */
extern const struct nd_grpc_method cri_rpc_events_methods[];    /* events */
extern const struct nd_grpc_method cri_rpc_node_methods[];      /* nodens.v1.Node */
extern const struct nd_grpc_method cri_rpc_pods_methods[];      /* nodens.v1.Node: pods */
/* nodens.v1.Node: exec, attach, port-forward, usage, remove */
extern const struct nd_grpc_method cri_rpc_operator_methods[];
extern const struct nd_grpc_method cri_rpc_info_methods[]; /* nodens.v1.Node: the daemon itself */
