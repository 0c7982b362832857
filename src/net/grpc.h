/* SPDX-License-Identifier: Apache-2.0 */
/* grpc.h - the small parts of gRPC over HTTP/2: message framing, timeouts, status texts. Bytes in, bytes out. */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

enum {
        ND_GRPC_MESSAGE = 16 << 20, /* most bytes of one message, both ways; the kubelet's own limit */
        ND_GRPC_PREFIX = 5,         /* bytes before each message: compressed?, length */
        ND_GRPC_STATUS_TEXT = 4096, /* most bytes of an error's text on the wire */
};

/* Reads the length-prefixed messages of one stream from pieces of any size. */
struct nd_grpc_reader {
        unsigned char prefix[ND_GRPC_PREFIX];
        size_t prefix_length;
        uint32_t expected;
        struct nd_text body;
};

void nd_grpc_reader_done(struct nd_grpc_reader *reader);

/* Takes bytes up to the end of one message. *ret_complete says that reader->body is a whole message, to be taken with nd_grpc_reader_next()
 * before more is read. *ret_used tells how many bytes were taken. Compressed or oversized messages are errors. */
[[nodiscard]] struct nd_error *nd_grpc_reader_feed(struct nd_grpc_reader *reader, const char *bytes, size_t length,
                                                   size_t *ret_used, bool *ret_complete);
void nd_grpc_reader_next(struct nd_grpc_reader *reader);

/* True when the stream may end here: between two messages. */
bool nd_grpc_reader_idle(const struct nd_grpc_reader *reader);

void nd_grpc_write_prefix(unsigned char prefix[ND_GRPC_PREFIX], size_t length);

/* "grpc-timeout": up to 8 digits and a unit. */
[[nodiscard]] struct nd_error *nd_grpc_parse_timeout(const char *text, size_t length, uint64_t *ret_us);
[[nodiscard]] char *nd_grpc_format_timeout(uint64_t timeout_us);

/* "grpc-message": percent-encoded. Encoding cleans what is not UTF-8 and cuts what is too long; decoding leaves a bad escape as it is. */
[[nodiscard]] char *nd_grpc_encode_text(const char *text);
[[nodiscard]] char *nd_grpc_decode_text(const char *bytes, size_t length);
