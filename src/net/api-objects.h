/* SPDX-License-Identifier: Apache-2.0 */
/* api-objects.h - what an API server sends: pages of a list, lines of a watch, words about an error. Bytes in, values out. */
#pragma once

#include "base/json.h"

enum {
        ND_API_PAGE_BYTES = 64 << 20, /* most bytes of one page of a list */
        ND_API_OBJECT_BYTES =
                8 << 20, /* and of one line of a watch: an object has at most 3 MiB, its escapes may double that */
};

/* One page. The pointers are into doc. */
struct nd_api_page {
        yyjson_doc *doc;
        yyjson_val *items;        /* an array; nullptr: none */
        const char *version;      /* of the whole list */
        const char *continuation; /* "" on the last page */
        uint64_t remaining;       /* objects of later pages, where the API server says so */
};

void nd_api_page_done(struct nd_api_page *page);
[[nodiscard]] struct nd_error *nd_api_page_parse(const char *bytes, size_t length, struct nd_api_page *ret);

/* What an object says about itself; "" where it does not. */
const char *nd_api_name(yyjson_val *object);
const char *nd_api_namespace(yyjson_val *object);
const char *nd_api_version(yyjson_val *object); /* metadata.resourceVersion */

enum nd_api_event {
        ND_API_PUT, /* added or modified */
        ND_API_REMOVED,
        ND_API_BOOKMARK, /* only the object's version counts */
};

/* The lines of a watch. Zero-initialised is at the beginning. */
struct nd_api_lines {
        struct nd_text rest; /* of a line that is not complete */
        struct nd_error *(*take)(enum nd_api_event event, yyjson_val *object, void *userdata);
        void *userdata;
};

void nd_api_lines_done(struct nd_api_lines *lines);

/* Takes what has arrived. An ERROR event is an error whose errno is the HTTP status: 410 means that the versions asked for are gone. */
[[nodiscard]] struct nd_error *nd_api_lines_feed(struct nd_api_lines *lines, const char *bytes, size_t length);

/* An answer other than 2xx as an error; its errno is the HTTP status. The body is a Status object where an API server wrote it. */
[[nodiscard]] struct nd_error *nd_api_refusal(long status, const char *body, size_t length);
