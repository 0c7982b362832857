/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/rpc/response.h"

ProtobufCMessage *cri_response_decode(struct nd_grpc_call *call, const ProtobufCMessageDescriptor *type, const char *bytes,
                                      size_t length) {
        ProtobufCMessage *request = nullptr;
        struct nd_error *error = nd_protobuf_unpack(type, bytes, length, &request);

        if (error)
                nd_grpc_call_finish(call, error);
        return request;
}

void cri_response_set_pod(struct nd_grpc_call *call, const struct cri_sandbox_request *pod) {
        nd_autofree char *name = nd_format("%s/%s", pod->namespace, pod->name);

        nd_grpc_call_set_subject(call, name);
}

void cri_response_send(struct nd_grpc_call *call, const ProtobufCMessage *message) {
        nd_autotext struct nd_text bytes = {};

        nd_protobuf_pack(message, &bytes);
        nd_grpc_call_send(call, nd_text_get(&bytes), bytes.length);
}

void cri_response_with(struct nd_grpc_call *call, const ProtobufCMessage *message) {
        cri_response_send(call, message);
        nd_grpc_call_finish(call, nullptr);
}

void cri_response_finish(struct nd_grpc_call *call, struct nd_error *error, const ProtobufCMessage *message) {
        if (error)
                nd_grpc_call_finish(call, error);
        else
                cri_response_with(call, message);
}

ProtobufCMessage *cri_response_message(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor) {
        ProtobufCMessage *message = nd_arena_alloc(memory, 1, descriptor->sizeof_message);

        protobuf_c_message_init(descriptor, message);
        return message;
}

/* The layout that protoc-c generates for every map<string, string>. */
struct entry {
        ProtobufCMessage base;
        char *key;
        char *value;
};

void *cri_response_entries(struct nd_arena *memory, const ProtobufCMessageDescriptor *descriptor,
                           const struct cri_pairs *list) {
        struct entry **entries = nd_arena_alloc(memory, list->count, sizeof(struct entry *));

        for (size_t i = 0; i < list->count; i++) {
                entries[i] = nd_arena_alloc(memory, 1, sizeof(struct entry));
                entries[i]->base.descriptor = descriptor;
                entries[i]->key = list->items[i].key;
                entries[i]->value = list->items[i].value;
        }
        return entries;
}
