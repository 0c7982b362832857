/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.h - message framing, timeouts and status texts of gRPC over HTTP/2. No I/O. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum {
        /* Maximum size of a message, both ways; the kubelet's own limit. */
        ND_GRPC_MESSAGE = 16 << 20,
        ND_GRPC_PREFIX = 5,         /* bytes before each message: compressed flag, length */
        ND_GRPC_STATUS_TEXT = 4096, /* maximum length of an error text on the wire */
};

/* Reads the length-prefixed messages of one stream from pieces of any size. */
struct nd_grpc_reader {
        unsigned char prefix[ND_GRPC_PREFIX];
        size_t prefix_length;
        uint32_t expected;
        struct nd_text body;
};

void nd_grpc_reader_done(struct nd_grpc_reader *reader);

/* Consumes bytes up to the end of one message. *ret_complete is true if reader->body is a complete
 * message; take it with nd_grpc_reader_next() before reading on. *ret_used is the number of bytes
 * consumed. Compressed or oversized messages are errors. */
[[nodiscard]] struct nd_error *nd_grpc_reader_feed(struct nd_grpc_reader *reader, const char *bytes, size_t length,
                                                   size_t *ret_used, bool *ret_complete);
void nd_grpc_reader_next(struct nd_grpc_reader *reader);

/* True if the stream may end here: between two messages. */
bool nd_grpc_reader_idle(const struct nd_grpc_reader *reader);

void nd_grpc_write_prefix(unsigned char prefix[ND_GRPC_PREFIX], size_t length);

/* "grpc-timeout": up to 8 digits and a unit. */
[[nodiscard]] struct nd_error *nd_grpc_parse_timeout(const char *text, size_t length, uint64_t *ret_us);
[[nodiscard]] char *nd_grpc_format_timeout(uint64_t timeout_us);

/* "grpc-message": percent-encoded. Encoding replaces invalid UTF-8 and truncates; decoding leaves
 * an invalid escape unchanged. */
[[nodiscard]] char *nd_grpc_encode_text(const char *text);
[[nodiscard]] char *nd_grpc_decode_text(const char *bytes, size_t length);
