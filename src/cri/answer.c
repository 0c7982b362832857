/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/answer.h"

#include <stdalign.h>
#include <string.h>

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

/* ---- memory ---- */

enum { CHUNK = 64 << 10 };

struct answer_chunk {
        struct answer_chunk *next;
        size_t used, size;
        alignas(max_align_t) char bytes[];
};

void answer_memory_done(struct answer_memory *memory) {
        struct answer_chunk *next;

        for (struct answer_chunk *chunk = memory->chunks; chunk; chunk = next) {
                next = chunk->next;
                free(chunk);
        }
        memory->chunks = nullptr;
}

void *answer_alloc(struct answer_memory *memory, size_t size) {
        struct answer_chunk *chunk = memory->chunks;
        void *found;

        size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        if (!chunk || chunk->size - chunk->used < size) {
                size_t room = size > CHUNK ? size : CHUNK;

                chunk = nd_calloc(1, sizeof *chunk + room);
                chunk->size = room;
                chunk->next = memory->chunks;
                memory->chunks = chunk;
        }
        found = chunk->bytes + chunk->used;
        chunk->used += size;
        return found;
}

char *answer_copy(struct answer_memory *memory, const char *text) {
        size_t size = strlen(text) + 1;

        return memcpy(answer_alloc(memory, size), text, size);
}

ProtobufCMessage *answer_message(struct answer_memory *memory, const ProtobufCMessageDescriptor *descriptor) {
        ProtobufCMessage *message = answer_alloc(memory, descriptor->sizeof_message);

        protobuf_c_message_init(descriptor, message);
        return message;
}

/* What protoc-c makes of every map<string, string>. */
struct entry {
        ProtobufCMessage base;
        char *key;
        char *value;
};

void *answer_entries(struct answer_memory *memory, const ProtobufCMessageDescriptor *descriptor, const pairs *list) {
        struct entry **entries = answer_alloc(memory, list->count * sizeof(struct entry *));

        for (size_t i = 0; i < list->count; i++) {
                entries[i] = answer_alloc(memory, sizeof(struct entry));
                entries[i]->base.descriptor = descriptor;
                entries[i]->key = list->items[i].key;
                entries[i]->value = list->items[i].value;
        }
        return entries;
}
