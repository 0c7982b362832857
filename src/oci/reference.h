/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - names of images: "docker.io/library/busybox:1.37", "registry:5000/a/b@sha256:..."
 *
 *      reference = name [":" tag] ["@" digest]           name   = [domain "/"] path
 *      domain    = host [":" port]                       host   = labels of letters, digits and inner '-', joined by one '.';
 *                                                                 or an IPv6 address in brackets
 *      path      = component {"/" component}             tag    = [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}
 *      component = runs of a-z and 0-9, joined by one '.', one or two '_', or any number of '-'
 *
 * What stands before the first slash is a domain only if it holds a '.', a ':' or an upper case letter, or is "localhost";
 * otherwise, and without a slash, the image is Docker Hub's: "busybox" is docker.io/library/busybox, "a/b" is
 * docker.io/a/b. Since components are so narrow no reference can climb ("..") or leave its repository. */
#pragma once

#include "oci/digest.h"

enum {
        ND_REFERENCE_PATH = 255,   /* bytes of the path, as the distribution specification's clients have it */
        ND_REFERENCE_DOMAIN = 261, /* a DNS name and a port */
        ND_REFERENCE_TAG = 128,
        ND_REFERENCE_TEXT = 1024, /* longest text that is looked at; every valid reference is shorter */
};

/* Normalised: domain and path are there, and a tag or a digest. Where the text gave both the tag is checked and dropped, since
 * the digest says what is meant; where it gave none the tag is "latest". Owns its strings. */
struct nd_reference {
        char *domain;
        char *path;
        char *tag;               /* nullptr when there is a digest */
        struct nd_digest digest; /* none when there is a tag */
};

void nd_reference_done(struct nd_reference *reference);

[[nodiscard]] struct nd_error *nd_reference_parse(const char *text, struct nd_reference *ret);

/* The one text of a reference: "domain/path:tag" or "domain/path@digest". Parsing it gives the same reference. */
[[nodiscard]] char *nd_reference_text(const struct nd_reference *reference);
[[nodiscard]] char *nd_reference_name(const struct nd_reference *reference); /* "domain/path" */
[[nodiscard]] char *nd_reference_with_digest(const struct nd_reference *reference, const struct nd_digest *digest);

/* The tag and path rules alone, for what is put into a registry's URL. */
[[nodiscard]] bool nd_reference_valid_tag(const char *tag);
[[nodiscard]] bool nd_reference_valid_path(const char *path);
[[nodiscard]] bool nd_reference_valid_domain(const char *domain);

/* Whether a text may be an image's id, whole or cut short: hex digits, at least ND_ID_PREFIX of them, with or without
 * "sha256:" before them. ret_hex points into the text. */
enum {
        ND_ID_PREFIX = 4,
};
[[nodiscard]] bool nd_reference_is_id(const char *text, const char **ret_hex);
