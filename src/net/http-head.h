/* SPDX-License-Identifier: Apache-2.0 */
/* http-head.h - parses and writes the head of one HTTP/1.1 request or response; no I/O
 *
 * For servers that upgrade: a connection carries one request without a body, and the bytes after
 * its head belong to another protocol. Strict where tolerance has led to request smuggling
 * elsewhere: CRLF only, no folded lines, no space before a colon, no body. The query is discarded,
 * and nothing is decoded. */
#pragma once

#include "base/text.h"

enum {
        ND_HTTP_HEAD = 32 << 10,   /* maximum bytes of a head */
        ND_HTTP_FIELDS = 128,      /* maximum lines after the first */
        ND_HTTP_ANSWER = 16 << 10, /* maximum bytes of a response */
};

struct nd_http_field {
        const char *name; /* as received; compared case-insensitively */
        const char *value;
};

/* A parsed head. Owns its bytes; all strings point into them. */
struct nd_http_head {
        char *bytes;
        unsigned status;    /* of a response, which has neither method nor path */
        const char *method; /* "GET", "POST": not checked against a list */
        const char *path;   /* begins with '/', without the query */
        struct nd_http_field *fields;
        size_t count;
};

void nd_http_head_done(struct nd_http_head *head);
#define nd_autohead nd_cleanup(nd_http_head_done)

/* Parses a head at the beginning of the input. *ret_used is the length of the head: bytes after it
 * belong to the next protocol. 0 means that the head is incomplete and *ret is empty: call again
 * with more input. The error is meant for the peer: ND_INVALID, or ND_EXHAUSTED if a limit is
 * exceeded. */
[[nodiscard]] struct nd_error *nd_http_head_read(const char *bytes, size_t length, struct nd_http_head *ret, size_t *ret_used);

/* For clients that upgrade: parses the response head. After status 101 the next protocol follows,
 * else an error text. */
[[nodiscard]] struct nd_error *nd_http_answer_read(const char *bytes, size_t length, struct nd_http_head *ret,
                                                   size_t *ret_used);

/* For servers that take a body: parses a complete request. The body points into the input; its
 * length comes from Content-Length only, and is at most body_most. *ret_used is 0 until the body is
 * complete, too. */
[[nodiscard]] struct nd_error *nd_http_request_read(const char *bytes, size_t length, size_t body_most,
                                                    struct nd_http_head *ret, const char **ret_body, size_t *ret_body_length,
                                                    size_t *ret_used);

/* The first field of that name, or nullptr. */
const char *nd_http_head_get(const struct nd_http_head *head, const char *name);

/* Iterates over the items of all fields of a name, in order, whether repeated or comma-separated:
 *      struct nd_http_items items = {.name = "X-Stream-Protocol-Version"};
 *      while (nd_http_head_next(head, &items))
 *              use(items.item, items.length);
 * An item is not terminated, has no spaces around it and is never empty. */
struct nd_http_items {
        const char *name;
        const char *item;
        size_t length;
        size_t field;     /* the next field, */
        const char *rest; /* unless this one has more items */
};
[[nodiscard]] bool nd_http_head_next(const struct nd_http_head *head, struct nd_http_items *items);

/* True if one of the items equals this one, ignoring case: "Connection: keep-alive, Upgrade" lists
 * "upgrade". */
[[nodiscard]] bool nd_http_head_lists(const struct nd_http_head *head, const char *name, const char *item);

/* Writes a response. A 101 has the fields only; any other one closes the connection and has the
 * text as its body (nullptr = the reason phrase). The fields end with an empty one or are nullptr.
 * A field value with a control character is left out, so pass trusted values only. */
void nd_http_answer(struct nd_text *out, unsigned status, const struct nd_http_field *fields, const char *words);

/* The status for an error: 400, 403, 404, 431 (the head exceeds a limit), 503, else 500. */
unsigned nd_http_status(const struct nd_error *error);
