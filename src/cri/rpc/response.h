/* SPDX-License-Identifier: Apache-2.0 */
/* response.h - decodes requests and encodes responses */
#pragma once

#include "base/arena.h"
#include "cri/core/request.h"
#include "net/grpc-session.h"
#include "net/protobuf.h"

/* Returns the decoded request, or nullptr after finishing the call with INVALID_ARGUMENT. Free it
 * with nd_protobuf_free(). */
ProtobufCMessage *cri_response_decode(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type, const char *bytes,
                                      size_t length);

/* Names the pod of a call for the log, as NAMESPACE/NAME. */
void cri_response_set_pod(struct nd_grpc_call *call, const struct cri_sandbox_request *pod);

/* one of a stream */
void cri_response_send(struct nd_grpc_call *call, const ProtobufCMessage *message);
/* the only one; finishes the call */
void cri_response_with(struct nd_grpc_call *call, const ProtobufCMessage *message);
/* the only one, or an error in its place; takes the error */
void cri_response_finish(struct nd_grpc_call *call, struct nd_error *error, const ProtobufCMessage *message);

static inline void cri_response_request_done(ProtobufCMessage **request) {
        nd_protobuf_free(*request);
}
#define cri_response_autofree nd_cleanup(cri_response_request_done)

/* A response consists of many small messages that point to each other and to the daemon's objects:
 * they are allocated in one arena and freed together. */

/* Allocates a message of a type. */
#define cri_response_new(memory, type, descriptor) ((type *) cri_response_message((memory), &(descriptor)))
[[nodiscard]] ProtobufCMessage *cri_response_message(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor);

/* The entries of a map field. Each map has an entry type of its own, but all have the same two
 * members; the strings are borrowed from the pairs. */
[[nodiscard]] void *cri_response_entries(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor,
                                         const struct cri_pairs *list);
