/* SPDX-License-Identifier: Apache-2.0 */
/* http-head.h - the head of one HTTP/1.1 request or of the answer to it, as bytes
 *
 * For servers that upgrade: a connection carries one request without a body, and what follows its head belongs to another protocol. Strict where
 * tolerance has cost others: CRLF only, no folded lines, no space before a colon, no body. The query is thrown away, and nothing is decoded. */
#pragma once

#include "base/text.h"

enum {
        ND_HTTP_HEAD = 32 << 10,   /* most bytes of a head */
        ND_HTTP_FIELDS = 128,      /* most lines after the first */
        ND_HTTP_ANSWER = 16 << 10, /* most bytes of an answer */
};

struct nd_http_field {
        const char *name; /* as it came; compared without regard to case */
        const char *value;
};

/* A head that was read. Owns its bytes, which all strings point into. */
struct nd_http_head {
        char *bytes;
        unsigned status;    /* of an answer, which has neither method nor path */
        const char *method; /* "GET", "POST": not checked against a list */
        const char *path;   /* begins with '/', without the query */
        struct nd_http_field *fields;
        size_t count;
};

void nd_http_head_done(struct nd_http_head *head);
#define nd_autohead nd_cleanup(nd_http_head_done)

/* Reads a head from the beginning of what has come so far. *ret_used is the head's length: bytes after it are the next protocol's. 0 means that it is not
 * whole yet and *ret is empty: call again with more bytes behind these. The error is for the peer: ND_INVALID, or ND_EXHAUSTED past a bound. */
[[nodiscard]] struct nd_error *nd_http_head_read(const char *bytes, size_t length, struct nd_http_head *ret, size_t *ret_used);

/* For clients that upgrade: the head of the answer. What follows it is the next protocol's when the status is 101, else words for people. */
[[nodiscard]] struct nd_error *nd_http_answer_read(const char *bytes, size_t length, struct nd_http_head *ret,
                                                   size_t *ret_used);

/* For servers that take a body: a whole request. The body points into the bytes; its length is told by Content-Length and nothing else, and is at most
 * body_most. *ret_used is 0 until the body is whole, too. */
[[nodiscard]] struct nd_error *nd_http_request_read(const char *bytes, size_t length, size_t body_most,
                                                    struct nd_http_head *ret, const char **ret_body, size_t *ret_body_length,
                                                    size_t *ret_used);

/* The first field of that name; nullptr when there is none. */
const char *nd_http_head_get(const struct nd_http_head *head, const char *name);

/* Steps through the items of all fields of a name, in order, be they repeated or lists with commas:
 *      struct nd_http_items items = {.name = "X-Stream-Protocol-Version"};
 *      while (nd_http_head_next(head, &items))
 *              use(items.item, items.length);
 * An item is not terminated, has no spaces around it and is never empty. */
struct nd_http_items {
        const char *name;
        const char *item;
        size_t length;
        size_t field;     /* the next field to look at, */
        const char *rest; /* unless this one has more */
};
[[nodiscard]] bool nd_http_head_next(const struct nd_http_head *head, struct nd_http_items *items);

/* True when one of the items is this one, without regard to case: "Connection: keep-alive, Upgrade" lists "upgrade". */
[[nodiscard]] bool nd_http_head_lists(const struct nd_http_head *head, const char *name, const char *item);

/* Writes an answer. A 101 has the fields only; any other one ends the connection and has the words as its body (nullptr = the status's own). The fields
 * end with an empty one or are nullptr. Field values must be ours: one with a control character is left out. */
void nd_http_answer(struct nd_text *out, unsigned status, const struct nd_http_field *fields, const char *words);

/* The status for an error: 400, 403, 404, 431 (the head breaks a bound), 503, else 500. */
unsigned nd_http_status(const struct nd_error *error);
