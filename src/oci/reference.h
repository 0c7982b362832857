/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - names of images: "docker.io/library/busybox:1.37", "registry:5000/a/b@sha256:..."
 *
 *      reference = name [":" tag] ["@" digest]    name = [domain "/"] path
 *      domain    = host [":" port]
 *      host      = labels of letters, digits and inner '-', joined by one '.'; or an IPv6 address
 *                  in brackets
 *      path      = component {"/" component}      tag  = [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}
 *      component = runs of a-z and 0-9, joined by one '.', one or two '_', or any number of '-'
 *
 * The part before the first slash is a domain only if it contains a '.', a ':' or an upper case
 * letter, or is "localhost"; otherwise, and without a slash, the image is on Docker Hub: "busybox"
 * is docker.io/library/busybox, "a/b" is docker.io/a/b. Components cannot be "..", so no reference
 * leaves its repository. */
#pragma once

#include "oci/digest.h"

enum {
        /* Maximum length of the path, as in clients of the distribution specification. */
        ND_REFERENCE_PATH = 255,
        ND_REFERENCE_DOMAIN = 261, /* a DNS name and a port */
        ND_REFERENCE_TAG = 128,
        /* Maximum length of a text to parse; every valid reference is shorter. */
        ND_REFERENCE_TEXT = 1024,
};

/* Normalised: domain and path are set, and a tag or a digest. If the text has both, the tag is
 * checked and dropped, since the digest is more specific; if it has neither, the tag is "latest".
 * Owns its strings. */
struct nd_reference {
        char *domain;
        char *path;
        char *tag;               /* nullptr if there is a digest */
        struct nd_digest digest; /* none if there is a tag */
};

void nd_reference_done(struct nd_reference *reference);

[[nodiscard]] struct nd_error *nd_reference_parse(const char *text, struct nd_reference *ret);

/* The canonical text of a reference: "domain/path:tag" or "domain/path@digest". Parsing it gives
 * the same reference. */
[[nodiscard]] char *nd_reference_text(const struct nd_reference *reference);
[[nodiscard]] char *nd_reference_with_digest(const struct nd_reference *reference, const struct nd_digest *digest);

/* The rules for tag and path alone, for parts of a registry's URL. */
[[nodiscard]] bool nd_reference_valid_tag(const char *tag);
[[nodiscard]] bool nd_reference_valid_path(const char *path);
[[nodiscard]] bool nd_reference_valid_domain(const char *domain);

/* Whether a text may be an image's id, complete or abbreviated: hex digits, at least ND_ID_PREFIX
 * of them, with or without "sha256:" before them. ret_hex points into the text. */
enum {
        ND_ID_PREFIX = 4,
};
[[nodiscard]] bool nd_reference_is_id(const char *text, const char **ret_hex);
