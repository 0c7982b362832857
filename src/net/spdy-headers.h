/* SPDX-License-Identifier: Apache-2.0 */
/* spdy-headers.h - SPDY/3 header blocks: compressed lists of names and values
 *
 * Each direction of a connection is one zlib stream that begins with a dictionary known to both sides and is flushed after each block; so blocks must be
 * read in order, and one that cannot be read ends the connection. A small block may inflate a thousandfold: the bound is on what comes out. */
#pragma once

#include "base/text.h"
#include "net/spdy.h"

enum { ND_SPDY_DICTIONARY = 1423 };

extern const char nd_spdy_dictionary[ND_SPDY_DICTIONARY + 1]; /* and a terminator that does not belong to it */

/* The zlib streams of both directions. */
struct nd_spdy_codec;

[[nodiscard]] struct nd_error *nd_spdy_codec_new(struct nd_spdy_codec **ret);
void nd_spdy_codec_free(struct nd_spdy_codec *codec);
static inline void nd_spdy_codec_done(struct nd_spdy_codec **codec) {
        nd_spdy_codec_free(*codec);
        *codec = nullptr;
}

/* A block that was read; the headers point into its bytes. */
struct nd_spdy_block {
        char *bytes;
        struct nd_spdy_header headers[ND_SPDY_FIELDS];
        size_t count;
};

void nd_spdy_block_done(struct nd_spdy_block *block);

/* Reads the next block of the peer into *ret, which the caller must nd_spdy_block_done() even after an error. ND_EXHAUSTED past a bound, else ND_INVALID; the codec is of no use after an error. */
[[nodiscard]] struct nd_error *nd_spdy_codec_read(struct nd_spdy_codec *codec, const char *bytes, size_t length,
                                                  struct nd_spdy_block *ret);

/* Appends our next block. What was written must be sent, and in order. */
void nd_spdy_codec_write(struct nd_spdy_codec *codec, const struct nd_spdy_header *headers, size_t count, struct nd_text *out);
