/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h - content digests: "sha256:<hex>", and incremental hashing
 *
 * A digest is a plain value; copy it. Zero-initialised it means "none". Untrusted text becomes one
 * only through nd_digest_parse(), so the hex form of a digest is always safe as a file name. */
#pragma once

#include <nettle/sha2.h>
#include <stdint.h>

#include "base/error.h"

enum nd_digest_kind {
        ND_HASH_NONE,
        ND_HASH_SHA256,
        ND_HASH_SHA512,
};

enum {
        ND_DIGEST_BYTES = SHA512_DIGEST_SIZE,
        ND_DIGEST_HEX = 2 * ND_DIGEST_BYTES + 1,               /* with the terminator */
        ND_DIGEST_TEXT = sizeof "sha512:" - 1 + ND_DIGEST_HEX, /* with the terminator */
};

struct nd_digest {
        enum nd_digest_kind kind;
        uint8_t bytes[ND_DIGEST_BYTES]; /* the rest is zero */
};

/* "sha256:" or "sha512:" and lower case hex of the right length, nothing else. Text of any length
 * is accepted and ends at its terminator: reject null bytes before. */
[[nodiscard]] struct nd_error *nd_digest_parse(const char *text, struct nd_digest *ret);

/* Only the hex, whose length determines the algorithm: a file's name in the store. False for
 * anything else. */
[[nodiscard]] bool nd_digest_parse_hex(const char *hex, struct nd_digest *ret);

const char *nd_digest_hex(const struct nd_digest *digest, char ret[static ND_DIGEST_HEX]);
/* "" for none. */
const char *nd_digest_text(const struct nd_digest *digest, char ret[static ND_DIGEST_TEXT]);
/* "sha256". */
const char *nd_digest_kind_name(enum nd_digest_kind kind);

static inline bool nd_digest_is_set(const struct nd_digest *digest) {
        return digest->kind != ND_HASH_NONE;
}
[[nodiscard]] bool nd_digest_equal(const struct nd_digest *a, const struct nd_digest *b);
/* An order, as memcmp(). */
[[nodiscard]] int nd_digest_compare(const struct nd_digest *a, const struct nd_digest *b);

/* A hash in progress. Owns nothing. */
struct nd_digest_hash {
        enum nd_digest_kind kind;
        union {
                struct sha256_ctx sha256;
                struct sha512_ctx sha512;
        };
};

void nd_digest_hash_start(enum nd_digest_kind kind, struct nd_digest_hash *ret);
void nd_digest_hash_add(struct nd_digest_hash *hash, const void *bytes, size_t length);
struct nd_digest nd_digest_hash_finish(struct nd_digest_hash *hash); /* resets the hash */

struct nd_digest nd_digest_of(enum nd_digest_kind kind, const void *bytes, size_t length);

/* Checks bytes against a digest. The error has the actual and the expected digest. */
[[nodiscard]] struct nd_error *nd_digest_check(const struct nd_digest *expected, const void *bytes, size_t length);
