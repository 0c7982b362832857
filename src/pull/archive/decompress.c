/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.c - see decompress.h
 *
 * Theory of operation
 *   The first four bytes are held back until they can be compared with the declared format
 *   (@checked). Then everything goes through feed_gzip(), feed_zstd() or straight to the sink. gzip
 *   may have several members, zstd several frames; both are handled as one stream. Output is
 *   counted before the sink gets it. */
#include "pull/archive/decompress.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum {
        /* a decompressor's buffer: large enough for efficient write()s, small enough for the CPU
         * cache */
        OUTPUT = 128 * 1024,
        MAGIC = 4,
};

struct pull_decompressor {
        enum nd_oci_compression compression;
        uint64_t ceiling, total;
        pull_decompressor_sink sink;
        void *userdata;
        char magic[MAGIC];
        size_t magic_length;
        bool checked;
        bool between; /* between gzip members or zstd frames: the stream may end here */
        z_stream gzip;
        bool gzip_ready;
        ZSTD_DCtx *zstd;
        char output[OUTPUT];
};

struct pull_decompressor *pull_decompressor_new(enum nd_oci_compression compression, uint64_t ceiling,
                                                pull_decompressor_sink sink, void *userdata) {
        struct pull_decompressor *s = nd_new(struct pull_decompressor);

        s->compression = compression;
        s->ceiling = ceiling;
        s->sink = sink;
        s->userdata = userdata;
        return s;
}

void pull_decompressor_free(struct pull_decompressor *s) {
        if (!s)
                return;
        if (s->gzip_ready)
                (void) inflateEnd(&s->gzip);
        (void) ZSTD_freeDCtx(s->zstd);
        free(s);
}

static struct nd_error *emit(struct pull_decompressor *s, const char *bytes, size_t length) {
        if (length > s->ceiling - s->total)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the layer unpacks to more than the limit of %llu bytes",
                                    (unsigned long long) s->ceiling);
        s->total += length;
        return length > 0 ? s->sink(s->userdata, bytes, length) : nullptr;
}

static struct nd_error *feed_gzip(struct pull_decompressor *s, const char *bytes, size_t length) {
        s->gzip.next_in = (Bytef *) bytes;
        s->gzip.avail_in = (uInt) length;
        while (s->gzip.avail_in > 0) {
                int status;

                if (s->between) { /* next member */
                        (void) inflateReset(&s->gzip);
                        s->between = false;
                }
                do {
                        s->gzip.next_out = (Bytef *) s->output;
                        s->gzip.avail_out = OUTPUT;
                        status = inflate(&s->gzip, Z_NO_FLUSH);
                        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
                                return nd_error_new(ND_DATA_LOSS, 0, "invalid gzip data: %s",
                                                    s->gzip.msg ? s->gzip.msg : "unexpected data");
                        nd_try(emit(s, s->output, OUTPUT - s->gzip.avail_out));
                } while (s->gzip.avail_out == 0 && status == Z_OK);
                s->between = status == Z_STREAM_END;
        }
        return nullptr;
}

static struct nd_error *feed_zstd(struct pull_decompressor *s, const char *bytes, size_t length) {
        ZSTD_inBuffer in = {.src = bytes, .size = length};
        ZSTD_outBuffer out;

        do {
                size_t left;

                out = (ZSTD_outBuffer) {.dst = s->output, .size = OUTPUT};
                left = ZSTD_decompressStream(s->zstd, &out, &in);
                if (ZSTD_isError(left))
                        return nd_error_new(ND_DATA_LOSS, 0, "invalid zstd data, or a window above 8 MiB: %s",
                                            ZSTD_getErrorName(left));
                s->between = left == 0;
                nd_try(emit(s, s->output, out.pos));
        } while (in.pos < in.size || (out.pos == out.size && !s->between));
        return nullptr;
}

static struct nd_error *feed(struct pull_decompressor *s, const char *bytes, size_t length) {
        switch (s->compression) {
        case ND_COMPRESSION_GZIP:
                return feed_gzip(s, bytes, length);
        case ND_COMPRESSION_ZSTD:
                return feed_zstd(s, bytes, length);
        default:
                return emit(s, bytes, length);
        }
}

static enum nd_oci_compression sniff(const char *magic, size_t length) {
        static const unsigned char gzip[] = {0x1f, 0x8b, 0x08}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

        if (length >= sizeof gzip && memcmp(magic, gzip, sizeof gzip) == 0)
                return ND_COMPRESSION_GZIP;
        /* Skippable frames may come first: 0x184D2A50 to 5F. */
        if (length >= sizeof zstd && (memcmp(magic, zstd, sizeof zstd) == 0 || (((unsigned char) magic[0] & 0xf0) == 0x50 &&
                                                                                memcmp(magic + 1, "\x2a\x4d\x18", 3) == 0)))
                return ND_COMPRESSION_ZSTD;
        return ND_COMPRESSION_NONE;
}

/* Compares the first bytes with the declared format and initializes the decompressor. */
static struct nd_error *check(struct pull_decompressor *s) {
        static const char *const names[] = {
                [ND_COMPRESSION_NONE] = "plain tar", [ND_COMPRESSION_GZIP] = "gzip", [ND_COMPRESSION_ZSTD] = "zstd"};
        enum nd_oci_compression found = sniff(s->magic, s->magic_length);

        s->checked = true;
        if (s->compression == ND_COMPRESSION_DETECT)
                s->compression = found;
        if (found != s->compression)
                return nd_error_new(ND_INVALID, 0, "the layer's media type is %s, but its data is %s", names[s->compression],
                                    found == ND_COMPRESSION_NONE ? "neither gzip nor zstd" : names[found]);
        if (found == ND_COMPRESSION_GZIP) {
                if (inflateInit2(&s->gzip, MAX_WBITS + 16) != Z_OK)
                        return nd_error_new(ND_INTERNAL, ENOMEM, "initialize gzip");
                s->gzip_ready = true;
        }
        if (found == ND_COMPRESSION_ZSTD) {
                s->zstd = ZSTD_createDCtx();
                if (!s->zstd ||
                    ZSTD_isError(ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, DECOMPRESSOR_ZSTD_WINDOW_LOG)))
                        return nd_error_new(ND_INTERNAL, ENOMEM, "initialize zstd");
        }
        return feed(s, s->magic, s->magic_length);
}

struct nd_error *pull_decompressor_feed(struct pull_decompressor *s, const char *bytes, size_t length) {
        if (!s->checked) {
                size_t n = length < MAGIC - s->magic_length ? length : MAGIC - s->magic_length;

                memcpy(s->magic + s->magic_length, bytes, n);
                s->magic_length += n;
                if (s->magic_length < MAGIC)
                        return nullptr;
                nd_try(check(s));
                bytes += n;
                length -= n;
        }
        for (; length > 0;) {
                size_t n = length < (1 << 30) ? length : 1 << 30; /* zlib counts in unsigned int */

                nd_try(feed(s, bytes, n));
                bytes += n;
                length -= n;
        }
        return nullptr;
}

struct nd_error *pull_decompressor_finish(struct pull_decompressor *s) {
        if (!s->checked)
                nd_try(check(s));
        if (s->compression != ND_COMPRESSION_NONE && !s->between)
                return nd_error_new(ND_DATA_LOSS, 0, "the compressed data is truncated");
        return nullptr;
}
