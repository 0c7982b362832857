/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.h - protobuf-c messages: bounded decoding, valid UTF-8 on encoding */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/text.h"

enum {
        ND_PROTOBUF_DEPTH = 32,
        ND_PROTOBUF_MEMORY = 64 << 20, /* maximum memory of one decoded message */
};

/* Decodes a message; strings must be UTF-8, as proto3 requires. Free it with nd_protobuf_free(). */
[[nodiscard]] struct nd_error *nd_protobuf_unpack(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length,
                                                  ProtobufCMessage **ret);
void nd_protobuf_free(ProtobufCMessage *message);

/* Encodes a message. Invalid UTF-8 in strings is replaced first: Go rejects a whole message for one
 * invalid byte. */
void nd_protobuf_pack(const ProtobufCMessage *message, struct nd_text *ret);
