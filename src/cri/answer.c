/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/answer.h"

ProtobufCMessage *answer_decode(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type, const char *bytes,
                                size_t length) {
        ProtobufCMessage *request = nullptr;
        struct nd_error *error = nd_protobuf_unpack(type, bytes, length, &request);

        if (error)
                nd_grpc_call_finish(call, error);
        return request;
}

void answer_send(struct nd_grpc_call *call, const ProtobufCMessage *message) {
        nd_autotext bytes = {};

        nd_protobuf_pack(message, &bytes);
        nd_grpc_call_send(call, nd_text_get(&bytes), bytes.length);
}

void answer_with(struct nd_grpc_call *call, const ProtobufCMessage *message) {
        answer_send(call, message);
        nd_grpc_call_finish(call, nullptr);
}
