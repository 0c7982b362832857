/* SPDX-License-Identifier: Apache-2.0 */
/* methods.h - the tables of RPCs: decode, do, encode
 *
 * Nothing below these files knows protobuf. A handler decodes its request, asks the parts of the
 * runtime, which is its userdata, and answers at once or through a pending call. */
#pragma once

#include "net/grpc-server.h"

extern const struct nd_grpc_method cri_rpc_image_methods[];     /* runtime.v1.ImageService */
extern const struct nd_grpc_method cri_rpc_runtime_methods[];   /* runtime.v1.RuntimeService: the node */
extern const struct nd_grpc_method cri_rpc_sandbox_methods[];   /* its pod sandboxes */
extern const struct nd_grpc_method cri_rpc_container_methods[]; /* its containers */
extern const struct nd_grpc_method cri_rpc_exec_methods[];      /* commands in them */
extern const struct nd_grpc_method cri_rpc_stats_methods[];     /* what they use */
extern const struct nd_grpc_method cri_rpc_events_methods[];    /* what happens to them */
extern const struct nd_grpc_method cri_rpc_node_methods[];      /* nodens.v1.Node */
extern const struct nd_grpc_method cri_rpc_pods_methods[];      /* nodens.v1.Node: pods */
extern const struct nd_grpc_method cri_rpc_operator_methods[];  /* nodens.v1.Node: what an operator does with them */
