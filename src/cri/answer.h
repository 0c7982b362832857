/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what every handler does: decode the request, encode the answer */
#pragma once

#include "net/grpc-session.h"
#include "net/protobuf.h"

/* The decoded request, or nullptr after the call was ended with INVALID_ARGUMENT. Free it with nd_protobuf_free(). */
ProtobufCMessage *answer_decode(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type, const char *bytes,
                                size_t length);

void answer_send(struct nd_grpc_call *call, const ProtobufCMessage *message); /* one of a stream */
void answer_with(struct nd_grpc_call *call, const ProtobufCMessage *message); /* the only one; ends the call */

static inline void answer_request_done(ProtobufCMessage **request) {
        nd_protobuf_free(*request);
}
#define answer_autofree nd_cleanup(answer_request_done) ProtobufCMessage *
