/* SPDX-License-Identifier: Apache-2.0 */
/* api-objects.h - parses what an API server sends: pages of a list, lines of a watch, error
 * responses. No I/O. */
#pragma once

#include "base/json.h"

enum {
        ND_API_PAGE_BYTES = 64 << 20, /* maximum size of one page of a list */
        /* Maximum size of one line of a watch: an object has at most 3 MiB, escapes may double
         * that. */
        ND_API_OBJECT_BYTES = 8 << 20,
};

/* One page. The pointers are into doc. */
struct nd_api_page {
        yyjson_doc *doc;
        yyjson_val *items;        /* an array; nullptr: none */
        const char *version;      /* of the whole list */
        const char *continuation; /* "" on the last page */
        uint64_t remaining;       /* objects on later pages, if the API server sends it */
};

void nd_api_page_done(struct nd_api_page *page);
[[nodiscard]] struct nd_error *nd_api_page_parse(const char *bytes, size_t length, struct nd_api_page *ret);

/* Metadata of an object; "" if absent. */
const char *nd_api_name(yyjson_val *object);
const char *nd_api_namespace(yyjson_val *object);
const char *nd_api_version(yyjson_val *object); /* metadata.resourceVersion */

enum nd_api_event {
        ND_API_PUT, /* added or modified */
        ND_API_REMOVED,
        ND_API_BOOKMARK, /* only the object's version is set */
};

/* Splits a watch into lines. Zero-initialize it. */
struct nd_api_lines {
        struct nd_text rest; /* an incomplete line */
        struct nd_error *(*take)(enum nd_api_event event, yyjson_val *object, void *userdata);
        void *userdata;
};

void nd_api_lines_done(struct nd_api_lines *lines);

/* Processes the bytes received. An ERROR event gives an error whose errno is the HTTP status: 410
 * means that the requested version has expired. */
[[nodiscard]] struct nd_error *nd_api_lines_feed(struct nd_api_lines *lines, const char *bytes, size_t length);

/* Makes an error of a response other than 2xx; its errno is the HTTP status. The body is a Status
 * object if an API server wrote it. */
[[nodiscard]] struct nd_error *nd_api_refusal(long status, const char *body, size_t length);
