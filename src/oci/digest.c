/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/digest.h"

#include <string.h>

#include "base/text.h"

static const struct {
        const char *name;
        size_t size;
} kinds[] = {
        [ND_HASH_NONE] = {"none", 0},
        [ND_HASH_SHA256] = {"sha256", SHA256_DIGEST_SIZE},
        [ND_HASH_SHA512] = {"sha512", SHA512_DIGEST_SIZE},
};
static_assert(nd_count_of(kinds) == ND_HASH_SHA512 + 1);

const char *nd_digest_kind_name(enum nd_digest_kind kind) {
        return kinds[kind].name;
}

/* Lower case only: two spellings of one digest would be two names of one file. */
static int nibble(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hex(enum nd_digest_kind kind, const char *hex, struct nd_digest *ret) {
        struct nd_digest digest = {.kind = kind};

        if (strlen(hex) != 2 * kinds[kind].size)
                return false;
        for (size_t i = 0; i < kinds[kind].size; i++) {
                int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                digest.bytes[i] = (uint8_t) (high << 4 | low);
        }
        *ret = digest;
        return true;
}

bool nd_digest_parse_hex(const char *hex, struct nd_digest *ret) {
        return parse_hex(ND_HASH_SHA256, hex, ret) || parse_hex(ND_HASH_SHA512, hex, ret);
}

struct nd_error *nd_digest_parse(const char *text, struct nd_digest *ret) {
        nd_autofree char *quoted = nullptr, *shown = nullptr;
        const char *colon = strchr(text, ':');

        for (enum nd_digest_kind kind = ND_HASH_SHA256; colon && kind < nd_count_of(kinds); kind++)
                if ((size_t) (colon - text) == strlen(kinds[kind].name) &&
                    strncmp(text, kinds[kind].name, (size_t) (colon - text)) == 0 && parse_hex(kind, colon + 1, ret))
                        return nullptr;
        shown = nd_strndup(text, ND_DIGEST_TEXT);
        quoted = nd_text_quote(shown);
        return nd_error_new(ND_INVALID, 0,
                            "invalid digest %s: expected \"sha256:\" and 64 or \"sha512:\" and 128 lower-case hex digits",
                            quoted);
}

const char *nd_digest_hex(const struct nd_digest *digest, char ret[static ND_DIGEST_HEX]) {
        static const char digits[] = "0123456789abcdef";
        char *at = ret;

        for (size_t i = 0; i < kinds[digest->kind].size; i++) {
                *at++ = digits[digest->bytes[i] >> 4];
                *at++ = digits[digest->bytes[i] & 15];
        }
        *at = '\0';
        return ret;
}

const char *nd_digest_text(const struct nd_digest *digest, char ret[static ND_DIGEST_TEXT]) {
        char *end;

        ret[0] = '\0';
        if (!nd_digest_is_set(digest))
                return ret;
        end = stpcpy(stpcpy(ret, kinds[digest->kind].name), ":");
        (void) nd_digest_hex(digest, end);
        return ret;
}

int nd_digest_compare(const struct nd_digest *a, const struct nd_digest *b) {
        if (a->kind != b->kind)
                return a->kind < b->kind ? -1 : 1;
        return memcmp(a->bytes, b->bytes, kinds[a->kind].size);
}

bool nd_digest_equal(const struct nd_digest *a, const struct nd_digest *b) {
        return nd_digest_compare(a, b) == 0;
}

void nd_digest_hash_start(enum nd_digest_kind kind, struct nd_digest_hash *ret) {
        *ret = (struct nd_digest_hash) {.kind = kind};
        if (kind == ND_HASH_SHA256)
                sha256_init(&ret->sha256);
        else if (kind == ND_HASH_SHA512)
                sha512_init(&ret->sha512);
}

void nd_digest_hash_add(struct nd_digest_hash *hash, const void *bytes, size_t length) {
        if (hash->kind == ND_HASH_SHA256)
                sha256_update(&hash->sha256, length, bytes);
        else if (hash->kind == ND_HASH_SHA512)
                sha512_update(&hash->sha512, length, bytes);
}

struct nd_digest nd_digest_hash_finish(struct nd_digest_hash *hash) {
        struct nd_digest digest = {.kind = hash->kind};

        if (hash->kind == ND_HASH_SHA256)
                sha256_digest(&hash->sha256, SHA256_DIGEST_SIZE, digest.bytes);
        else if (hash->kind == ND_HASH_SHA512)
                sha512_digest(&hash->sha512, SHA512_DIGEST_SIZE, digest.bytes);
        return digest;
}

struct nd_digest nd_digest_of(enum nd_digest_kind kind, const void *bytes, size_t length) {
        struct nd_digest_hash hash;

        nd_digest_hash_start(kind, &hash);
        nd_digest_hash_add(&hash, bytes, length);
        return nd_digest_hash_finish(&hash);
}

struct nd_error *nd_digest_check(const struct nd_digest *expected, const void *bytes, size_t length) {
        struct nd_digest actual = nd_digest_of(expected->kind, bytes, length);
        char expected_text[ND_DIGEST_TEXT], actual_text[ND_DIGEST_TEXT];

        if (nd_digest_is_set(expected) && nd_digest_equal(expected, &actual))
                return nullptr;
        return nd_error_new(ND_DATA_LOSS, 0, "content has digest %s, expected %s", nd_digest_text(&actual, actual_text),
                            nd_digest_text(expected, expected_text));
}
