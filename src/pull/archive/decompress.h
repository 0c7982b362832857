/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.h - gzip, zstd or plain data as a stream with an output limit
 *
 * A codec without I/O. The first bytes must agree with the media type: a blob with type gzip and
 * other contents is rejected before a decompressor sees it. The first bytes decide only if the type
 * leaves it open. */
#pragma once

#include <stdint.h>

#include "oci/manifest.h"

enum {
        DECOMPRESSOR_ZSTD_WINDOW_LOG = 23, /* 8 MiB, as `zstd -19` uses; --long bombs need more */
};

struct pull_decompressor;

typedef struct nd_error *(*pull_decompressor_sink)(void *userdata, const char *bytes, size_t length);

/* ceiling is the output limit in bytes. */
[[nodiscard]] struct pull_decompressor *pull_decompressor_new(enum nd_oci_compression compression, uint64_t ceiling,
                                                              pull_decompressor_sink sink, void *userdata);
void pull_decompressor_free(struct pull_decompressor *inflate);
static inline void pull_decompressor_done(struct pull_decompressor **inflate) {
        pull_decompressor_free(*inflate);
        *inflate = nullptr;
}

[[nodiscard]] struct nd_error *pull_decompressor_feed(struct pull_decompressor *inflate, const char *bytes, size_t length);
[[nodiscard]] struct nd_error *pull_decompressor_finish(
        struct pull_decompressor *inflate); /* an error when the stream is truncated */
