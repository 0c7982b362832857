/* SPDX-License-Identifier: Apache-2.0 */
/* response.h - what every handler does: decode the request, encode the answer */
#pragma once

#include "base/arena.h"
#include "cri/core/request.h"
#include "net/grpc-session.h"
#include "net/protobuf.h"

/* The decoded request, or nullptr after the call was ended with INVALID_ARGUMENT. Free it with nd_protobuf_free(). */
ProtobufCMessage *cri_response_decode(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type, const char *bytes,
                                      size_t length);

void cri_response_send(struct nd_grpc_call *call, const ProtobufCMessage *message); /* one of a stream */
void cri_response_with(struct nd_grpc_call *call, const ProtobufCMessage *message); /* the only one; ends the call */

static inline void cri_response_request_done(ProtobufCMessage **request) {
        nd_protobuf_free(*request);
}
#define cri_response_autofree nd_cleanup(cri_response_request_done)

/* An answer is many small messages that point to each other and to what the daemon has: they live in one arena and go all at once. */

/* A new message of a type. */
#define cri_response_new(memory, type, descriptor) ((type *) cri_response_message((memory), &(descriptor)))
[[nodiscard]] ProtobufCMessage *cri_response_message(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor);

/* A map field's entries. Each map has an entry type of its own, all of them with the same two members; the strings stay the pairs'. */
[[nodiscard]] void *cri_response_entries(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor,
                                         const struct cri_pairs *list);
