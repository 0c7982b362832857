/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - gzip, zstd or nothing, as a stream with a ceiling on what comes out
 *
 * A codec without I/O. The first bytes must agree with what the media type promises: a blob that says gzip and is something else is
 * refused before a decompressor sees it. Only where the type leaves it open do the first bytes decide. */
#pragma once

#include <stdint.h>

#include "oci/manifest.h"

enum {
        ND_ZSTD_WINDOW_LOG = 23, /* 8 MiB: what `zstd -19` writes; --long bombs want more */
};

struct nd_inflate;

typedef struct nd_error *(*nd_inflate_sink)(void *userdata, const char *bytes, size_t length);

/* Ceiling: most bytes that may come out. */
[[nodiscard]] struct nd_inflate *nd_inflate_new(enum nd_compression compression, uint64_t ceiling, nd_inflate_sink sink,
                                                void *userdata);
void nd_inflate_free(struct nd_inflate *inflate);
static inline void nd_inflate_done(struct nd_inflate **inflate) {
        nd_inflate_free(*inflate);
        *inflate = nullptr;
}

[[nodiscard]] struct nd_error *nd_inflate_feed(struct nd_inflate *inflate, const char *bytes, size_t length);
[[nodiscard]] struct nd_error *nd_inflate_finish(struct nd_inflate *inflate); /* an error when the stream was cut */
[[nodiscard]] uint64_t nd_inflate_total(const struct nd_inflate *inflate);
