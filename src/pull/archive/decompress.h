/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.h - gzip, zstd or nothing, as a stream with a ceiling on what comes out
 *
 * A codec without I/O. The first bytes must agree with what the media type promises: a blob that says gzip and is something else is
 * refused before a decompressor sees it. Only where the type leaves it open do the first bytes decide. */
#pragma once

#include <stdint.h>

#include "oci/manifest.h"

enum {
        DECOMPRESSOR_ZSTD_WINDOW_LOG = 23, /* 8 MiB: what `zstd -19` writes; --long bombs want more */
};

struct pull_decompressor;

typedef struct nd_error *(*pull_decompressor_sink)(void *userdata, const char *bytes, size_t length);

/* Ceiling: most bytes that may come out. */
[[nodiscard]] struct pull_decompressor *pull_decompressor_new(enum nd_oci_compression compression, uint64_t ceiling,
                                                              pull_decompressor_sink sink, void *userdata);
void pull_decompressor_free(struct pull_decompressor *inflate);
static inline void pull_decompressor_done(struct pull_decompressor **inflate) {
        pull_decompressor_free(*inflate);
        *inflate = nullptr;
}

[[nodiscard]] struct nd_error *pull_decompressor_feed(struct pull_decompressor *inflate, const char *bytes, size_t length);
[[nodiscard]] struct nd_error *pull_decompressor_finish(
        struct pull_decompressor *inflate); /* an error when the stream was cut */
[[nodiscard]] uint64_t pull_decompressor_total(const struct pull_decompressor *inflate);
