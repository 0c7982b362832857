/* SPDX-License-Identifier: Apache-2.0 */
/* spdy-headers.c - see spdy-headers.h */
#include "net/spdy-headers.h"

#include <endian.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

/* Part of the protocol (SPDY/3.1 section 2.6.10.1): header names as in a block, with a length
 * before each, then common values. */
/* clang-format off */
const char nd_spdy_dictionary[ND_SPDY_DICTIONARY + 1] =
        "\0\0\0\7" "options" "\0\0\0\4" "head" "\0\0\0\4" "post" "\0\0\0\3" "put" "\0\0\0\6" "delete" "\0\0\0\5" "trace"
        "\0\0\0\6" "accept" "\0\0\0\16" "accept-charset" "\0\0\0\17" "accept-encoding" "\0\0\0\17" "accept-language"
        "\0\0\0\15" "accept-ranges" "\0\0\0\3" "age" "\0\0\0\5" "allow" "\0\0\0\15" "authorization"
        "\0\0\0\15" "cache-control" "\0\0\0\12" "connection" "\0\0\0\14" "content-base" "\0\0\0\20" "content-encoding"
        "\0\0\0\20" "content-language" "\0\0\0\16" "content-length" "\0\0\0\20" "content-location" "\0\0\0\13" "content-md5"
        "\0\0\0\15" "content-range" "\0\0\0\14" "content-type" "\0\0\0\4" "date" "\0\0\0\4" "etag" "\0\0\0\6" "expect"
        "\0\0\0\7" "expires" "\0\0\0\4" "from" "\0\0\0\4" "host" "\0\0\0\10" "if-match" "\0\0\0\21" "if-modified-since"
        "\0\0\0\15" "if-none-match" "\0\0\0\10" "if-range" "\0\0\0\23" "if-unmodified-since" "\0\0\0\15" "last-modified"
        "\0\0\0\10" "location" "\0\0\0\14" "max-forwards" "\0\0\0\6" "pragma" "\0\0\0\22" "proxy-authenticate"
        "\0\0\0\23" "proxy-authorization" "\0\0\0\5" "range" "\0\0\0\7" "referer" "\0\0\0\13" "retry-after"
        "\0\0\0\6" "server" "\0\0\0\2" "te" "\0\0\0\7" "trailer" "\0\0\0\21" "transfer-encoding" "\0\0\0\7" "upgrade"
        "\0\0\0\12" "user-agent" "\0\0\0\4" "vary" "\0\0\0\3" "via" "\0\0\0\7" "warning" "\0\0\0\20" "www-authenticate"
        "\0\0\0\6" "method" "\0\0\0\3" "get" "\0\0\0\6" "status" "\0\0\0\6" "200 OK" "\0\0\0\7" "version"
        "\0\0\0\10" "HTTP/1.1" "\0\0\0\3" "url" "\0\0\0\6" "public" "\0\0\0\12" "set-cookie" "\0\0\0\12" "keep-alive"
        "\0\0\0\6" "origin"
        "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
        "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
        "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
        "503 Service Unavailable"
        "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
        "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
        "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";
/* clang-format on */

enum {
        INFLATED_PIECE = 2048,
        /* Window bits: as large as the dictionary. With OUR_MEMORY our side takes 10 kB instead of
         * 256. */
        OUR_WINDOW = 11,
        OUR_MEMORY = 1,
};

struct nd_spdy_codec {
        z_stream in, out;
};

void nd_spdy_codec_free(struct nd_spdy_codec *codec) {
        if (!codec)
                return;
        (void) inflateEnd(&codec->in);
        (void) deflateEnd(&codec->out);
        free(codec);
}

struct nd_error *nd_spdy_codec_new(struct nd_spdy_codec **ret) {
        nd_cleanup(nd_spdy_codec_done) struct nd_spdy_codec *codec = nd_new(struct nd_spdy_codec);

        if (inflateInit(&codec->in) != Z_OK ||
            deflateInit2(&codec->out, Z_BEST_SPEED, Z_DEFLATED, OUR_WINDOW, OUR_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK ||
            deflateSetDictionary(&codec->out, (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY) != Z_OK)
                return nd_error_new(ND_INTERNAL, 0, "initialize a zlib stream; out of memory?");
        *ret = nd_take_ptr(codec);
        return nullptr;
}

void nd_spdy_block_done(struct nd_spdy_block *block) {
        free(block->bytes);
        block->bytes = nullptr;
        block->count = 0;
}

static struct nd_error *inflate_block(struct nd_spdy_codec *codec, const char *bytes, size_t length, struct nd_text *out) {
        z_stream *z = &codec->in;
        char piece[INFLATED_PIECE] = {};

        z->next_in = (const Bytef *) bytes;
        z->avail_in = (uInt) length;
        for (;;) {
                int result;

                z->next_out = (Bytef *) piece;
                z->avail_out = sizeof piece;
                result = inflate(z, Z_SYNC_FLUSH);
                if (result == Z_NEED_DICT)
                        result = inflateSetDictionary(z, (const Bytef *) nd_spdy_dictionary, ND_SPDY_DICTIONARY);
                else if (result == Z_BUF_ERROR && z->avail_in == 0)
                        return nullptr; /* the last piece ended with the block */
                if (result != Z_OK)
                        return nd_error_new(ND_INVALID, 0,
                                            "header block does not continue the zlib stream with the SPDY/3 dictionary");
                nd_text_append(out, piece, sizeof piece - z->avail_out);
                if (out->overflow)
                        return nd_error_new(ND_EXHAUSTED, 0, "a header block inflates to more than %d bytes", ND_SPDY_HEADERS);
        }
}

/* Cursor over an inflated block. */
struct walk {
        char *at;
        size_t left;
};

static bool walk_number(struct walk *walk, uint32_t *ret) {
        uint32_t number;

        if (walk->left < sizeof number)
                return false;
        memcpy(&number, walk->at, sizeof number);
        walk->at += sizeof number;
        walk->left -= sizeof number;
        *ret = be32toh(number);
        return true;
}

static bool walk_string(struct walk *walk, uint32_t length, const char **ret) {
        if (length > walk->left)
                return false;
        *ret = walk->at;
        walk->at += length;
        walk->left -= length;
        return true;
}

static bool is_name(const char *name, size_t length) {
        for (size_t i = 0; i < length; i++)
                if (name[i] <= ' ' || name[i] >= 0x7f || (name[i] >= 'A' && name[i] <= 'Z'))
                        return false;
        return length > 0;
}

static bool is_known(const struct nd_spdy_block *block, const char *name) {
        for (size_t i = 0; i < block->count; i++)
                if (nd_streq(block->headers[i].name, name))
                        return true;
        return false;
}

/* A string is terminated at the length field of the next one, once that has been read. */
static struct nd_error *parse_block(struct walk walk, struct nd_spdy_block *block) {
        uint32_t count, length;

        if (!walk_number(&walk, &count))
                return nd_error_new(ND_INVALID, 0, "a header block ends before its first number");
        if (count > ND_SPDY_FIELDS)
                return nd_error_new(ND_EXHAUSTED, 0, "header block has %u headers, the maximum is %d", count, ND_SPDY_FIELDS);
        for (uint32_t i = 0; i < count; i++) {
                struct nd_spdy_header *header = block->headers + i;
                uint32_t value_length;
                char *name_end, *value_end;

                if (i == 0 && !walk_number(&walk, &length))
                        return nd_error_new(ND_INVALID, 0, "a header block ends before its first name");
                if (!walk_string(&walk, length, &header->name))
                        return nd_error_new(ND_INVALID, 0, "the name of header %u is cut off", i);
                if (!is_name(header->name, length))
                        return nd_error_new(ND_INVALID, 0, "invalid name of header %u: expected a lower-case token", i);
                name_end = walk.at;
                if (!walk_number(&walk, &value_length) || !walk_string(&walk, value_length, &header->value))
                        return nd_error_new(ND_INVALID, 0, "the value of header %u is cut off", i);
                header->value_length = value_length;
                *name_end = '\0';
                value_end = walk.at;
                if (i + 1 < count && !walk_number(&walk, &length))
                        return nd_error_new(ND_INVALID, 0, "a header block ends before the name of header %u", i + 1);
                /* Of the last one: the buffer's terminator or the byte after the list. */
                *value_end = '\0';
                if (is_known(block, header->name))
                        return nd_error_new(ND_INVALID, 0, "header '%s' appears twice in a block", header->name);
                block->count++;
        }
        return walk.left == 0 ? nullptr : nd_error_new(ND_INVALID, 0, "a header block has bytes after its last header");
}

struct nd_error *nd_spdy_codec_read(struct nd_spdy_codec *codec, const char *bytes, size_t length, struct nd_spdy_block *ret) {
        nd_autotext struct nd_text text = ND_TEXT(ND_SPDY_HEADERS);
        size_t inflated;

        *ret = (struct nd_spdy_block) {};
        nd_try(inflate_block(codec, bytes, length, &text));
        inflated = text.length;
        ret->bytes = nd_text_steal(&text);
        return parse_block((struct walk) {.at = ret->bytes, .left = inflated}, ret);
}

static void add_number(struct nd_text *text, size_t number) {
        uint32_t bytes = htobe32((uint32_t) number);

        nd_text_append(text, (const char *) &bytes, sizeof bytes);
}

static void deflate_block(struct nd_spdy_codec *codec, const struct nd_text *plain, struct nd_text *out) {
        z_stream *z = &codec->out;
        char piece[INFLATED_PIECE] = {};

        z->next_in = (const Bytef *) nd_text_get(plain);
        z->avail_in = (uInt) plain->length;
        do {
                z->next_out = (Bytef *) piece;
                z->avail_out = sizeof piece;
                /* Cannot fail: there is room, and the stream was initialized. */
                (void) deflate(z, Z_SYNC_FLUSH);
                nd_text_append(out, piece, sizeof piece - z->avail_out);
        } while (z->avail_out == 0);
}

void nd_spdy_codec_write(struct nd_spdy_codec *codec, const struct nd_spdy_header *headers, size_t count,
                         struct nd_text *out) {
        nd_autotext struct nd_text plain = ND_TEXT(ND_SPDY_HEADERS);

        add_number(&plain, count);
        for (size_t i = 0; i < count; i++) {
                add_number(&plain, strlen(headers[i].name));
                nd_text_add(&plain, headers[i].name);
                add_number(&plain, headers[i].value_length);
                nd_text_append(&plain, headers[i].value, headers[i].value_length);
        }
        deflate_block(codec, &plain, out);
}
