/* SPDX-License-Identifier: Apache-2.0 */
/* spdy-headers.h - SPDY/3 header blocks: compressed lists of names and values
 *
 * Each direction of a connection is one zlib stream that begins with a dictionary known to both
 * sides and is flushed after each block; so blocks must be read in order, and a block that cannot
 * be read ends the connection. A small block may inflate a thousandfold: the limit applies to the
 * output. */
#pragma once

#include "base/text.h"
#include "net/spdy.h"

enum { ND_SPDY_DICTIONARY = 1423 };

/* Plus a terminator that is not part of it. */
extern const char nd_spdy_dictionary[ND_SPDY_DICTIONARY + 1];

/* The zlib streams of both directions. */
struct nd_spdy_codec;

[[nodiscard]] struct nd_error *nd_spdy_codec_new(struct nd_spdy_codec **ret);
void nd_spdy_codec_free(struct nd_spdy_codec *codec);
static inline void nd_spdy_codec_done(struct nd_spdy_codec **codec) {
        nd_spdy_codec_free(*codec);
        *codec = nullptr;
}

/* A parsed block; the headers point into its bytes. */
struct nd_spdy_block {
        char *bytes;
        struct nd_spdy_header headers[ND_SPDY_FIELDS];
        size_t count;
};

void nd_spdy_block_done(struct nd_spdy_block *block);

/* Reads the peer's next block into *ret, which the caller must nd_spdy_block_done() even after an
 * error. ND_EXHAUSTED if a limit is exceeded, else ND_INVALID; the codec is unusable after an
 * error. */
[[nodiscard]] struct nd_error *nd_spdy_codec_read(struct nd_spdy_codec *codec, const char *bytes, size_t length,
                                                  struct nd_spdy_block *ret);

/* Appends our next block. Blocks must be sent, and in order. */
void nd_spdy_codec_write(struct nd_spdy_codec *codec, const struct nd_spdy_header *headers, size_t count, struct nd_text *out);
