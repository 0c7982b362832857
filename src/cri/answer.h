/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what every handler does: decode the request, encode the answer */
#pragma once

#include "cri/request.h"
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

/* Memory for one answer: many small messages that point to each other and to what the daemon has, and go all at once. */
struct answer_chunk;
struct answer_memory {
        struct answer_chunk *chunks;
};

void answer_memory_done(struct answer_memory *memory);
[[nodiscard]] void *answer_alloc(struct answer_memory *memory, size_t size); /* zeroed */
[[nodiscard]] char *answer_copy(struct answer_memory *memory, const char *text);
#define answer_automemory nd_cleanup(answer_memory_done) struct answer_memory

/* A new message of a type. */
#define answer_new(memory, type, descriptor) ((type *) answer_message((memory), &(descriptor)))
[[nodiscard]] ProtobufCMessage *answer_message(struct answer_memory *memory, const ProtobufCMessageDescriptor *descriptor);

/* A map field's entries. Each map has an entry type of its own, all of them with the same two members; the strings stay the pairs'. */
[[nodiscard]] void *answer_entries(struct answer_memory *memory, const ProtobufCMessageDescriptor *descriptor,
                                   const pairs *list);
