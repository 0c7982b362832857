/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.h - messages of protobuf-c, bounded on the way in and clean on the way out */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"
#include "base/text.h"

enum {
        ND_PROTOBUF_DEPTH = 32,
        ND_PROTOBUF_MEMORY = 64 << 20, /* most bytes that one decoded message may take */
};

/* Decodes a message; strings are checked to be UTF-8, as proto3 says. Free it with nd_protobuf_free(). */
[[nodiscard]] struct nd_error *nd_protobuf_unpack(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length,
                                                  ProtobufCMessage **ret);
void nd_protobuf_free(ProtobufCMessage *message);

/* Encodes a message. Every string in it is cleaned first, in place or by a copy: Go refuses a message with one bad byte. */
void nd_protobuf_pack(const ProtobufCMessage *message, struct nd_text *ret);
