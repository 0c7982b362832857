/* SPDX-License-Identifier: Apache-2.0 */
/* http-head.c - see http-head.h */
#include "net/http-head.h"

#include <string.h>
#include <strings.h>

void nd_http_head_done(struct nd_http_head *head) {
        free(head->bytes);
        free(head->fields);
        *head = (struct nd_http_head) {};
}

/* Characters of a token (a method or field name); RFC 9110 section 5.6.2. */
static bool is_token(const char *text) {
        static const char marks[] = "!#$%&'*+-.^_`|~";

        if (*text == '\0')
                return false;
        for (; *text; text++) {
                bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');

                if (!letter && !(*text >= '0' && *text <= '9') && !strchr(marks, *text))
                        return false;
        }
        return true;
}

static bool is_control(char c) {
        return (unsigned char) c < 0x20 || c == 0x7f;
}

/* "POST /exec/TOKEN?query HTTP/1.1", parsed in place. */
static struct nd_error *read_request_line(char *line, struct nd_http_head *head) {
        char *target = strchr(line, ' ');
        char *version = target ? strchr(target + 1, ' ') : nullptr;

        if (!version)
                return nd_error_new(ND_INVALID, 0, "the request line is not 'METHOD PATH HTTP/1.1'");
        *target++ = '\0';
        *version++ = '\0';
        if (!nd_streq(version, "HTTP/1.1"))
                return nd_error_new(ND_INVALID, 0, "unsupported HTTP version: only HTTP/1.1 is supported");
        if (!is_token(line))
                return nd_error_new(ND_INVALID, 0, "invalid method in the request line");
        if (*target != '/')
                return nd_error_new(ND_INVALID, 0, "the request's path does not begin with '/'");
        for (const char *c = target; *c; c++)
                if (is_control(*c))
                        return nd_error_new(ND_INVALID, 0, "the request's path has a control character");
        target[strcspn(target, "?#")] = '\0';
        head->method = line;
        head->path = target;
        return nullptr;
}

/* "HTTP/1.1 101 Switching Protocols", parsed in place. */
static struct nd_error *read_status_line(char *line, struct nd_http_head *head) {
        static const char version[] = "HTTP/1.1 ";
        enum { DIGITS = 3 };
        char *digits = line + sizeof version - 1;

        if (!nd_has_prefix(line, version) || strspn(digits, "0123456789") != DIGITS || digits[0] == '0' ||
            (digits[DIGITS] != ' ' && digits[DIGITS] != '\0'))
                return nd_error_new(ND_INVALID, 0, "invalid status line: expected 'HTTP/1.1 STATUS REASON'");
        head->status = (unsigned) ((digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0'));
        return nullptr;
}

/* "Name: value", parsed in place. */
static struct nd_error *read_field(char *line, struct nd_http_head *head) {
        char *colon = strchr(line, ':');
        char *value, *end;

        if (!colon)
                return nd_error_new(ND_INVALID, 0, "a header line has no colon");
        *colon = '\0';
        if (!is_token(line))
                return nd_error_new(ND_INVALID, 0, "invalid header name: spaces are not allowed in it or before the colon");
        value = colon + 1 + strspn(colon + 1, " \t");
        end = value + strlen(value);
        while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        *end = '\0';
        for (const char *c = value; *c; c++)
                if (is_control(*c) && *c != '\t')
                        return nd_error_new(ND_INVALID, 0, "header '%s' has a control character", line);
        if (head->count == ND_HTTP_FIELDS)
                return nd_error_new(ND_EXHAUSTED, 0, "there are more than %d headers", ND_HTTP_FIELDS);
        head->fields[head->count++] = (struct nd_http_field) {.name = line, .value = value};
        return nullptr;
}

/* A body would be where the next protocol begins, and two parsers could disagree on where that
 * is. */
static struct nd_error *refuse_body(const struct nd_http_head *head) {
        for (size_t i = 0; i < head->count; i++) {
                const struct nd_http_field *field = head->fields + i;

                if (strcasecmp(field->name, "Transfer-Encoding") == 0 ||
                    (strcasecmp(field->name, "Content-Length") == 0 && !nd_streq(field->value, "0")))
                        return nd_error_new(ND_INVALID, 0, "the request has a body ('%s'), which is not allowed here",
                                            field->name);
        }
        return nullptr;
}

/* The length of the body that a request announces; 0 if none. */
static struct nd_error *body_length(const struct nd_http_head *head, size_t most, size_t *ret) {
        uint64_t announced = 0;
        bool seen = false;

        for (size_t i = 0; i < head->count; i++) {
                const struct nd_http_field *field = head->fields + i;

                if (strcasecmp(field->name, "Transfer-Encoding") == 0)
                        return nd_error_new(ND_INVALID, 0, "header '%s' is not supported; send Content-Length", field->name);
                if (strcasecmp(field->name, "Content-Length") != 0)
                        continue;
                if (seen || nd_text_parse_u64(field->value, SIZE_MAX, &announced) < 0)
                        return nd_error_new(ND_INVALID, 0, "invalid or repeated Content-Length in the request");
                seen = true;
        }
        if (announced > most)
                return nd_error_new(ND_EXHAUSTED, 0, "the request's body is longer than %zu bytes", most);
        *ret = (size_t) announced;
        return nullptr;
}

typedef struct nd_error *(*first_line)(char *line, struct nd_http_head *head);

static struct nd_error *read_lines(struct nd_http_head *head, size_t length, first_line read_first) {
        char *line = head->bytes;
        char *const end = head->bytes + length - 2; /* the empty line */

        while (line < end) {
                char *stop = memmem(line, (size_t) (end - line), "\r\n", 2);

                *stop = '\0';
                nd_try(line == head->bytes ? read_first(line, head) : read_field(line, head));
                line = stop + 2;
        }
        return head->method || head->status > 0 ? nullptr : nd_error_new(ND_INVALID, 0, "the head has no first line");
}

static struct nd_error *read_head(const char *bytes, size_t length, first_line read_first, struct nd_http_head *ret,
                                  size_t *ret_used) {
        nd_autohead struct nd_http_head head = {};
        size_t seen = length < ND_HTTP_HEAD ? length : ND_HTTP_HEAD;
        const char *empty_line = seen > 0 ? memmem(bytes, seen, "\r\n\r\n", 4) : nullptr;
        size_t used;

        *ret = (struct nd_http_head) {};
        *ret_used = 0;
        used = empty_line ? (size_t) (empty_line - bytes) + 4 : 0;
        if (seen > 0 && memchr(bytes, '\0', empty_line ? used : seen))
                return nd_error_new(ND_INVALID, 0, "the head has a null byte");
        if (!empty_line && length >= ND_HTTP_HEAD)
                return nd_error_new(ND_EXHAUSTED, 0, "the head is longer than %d bytes", ND_HTTP_HEAD);
        if (!empty_line)
                return nullptr;
        head.bytes = nd_strndup(bytes, used);
        head.fields = nd_calloc(ND_HTTP_FIELDS, sizeof *head.fields);
        nd_try(read_lines(&head, used, read_first));
        *ret = nd_take(head, (struct nd_http_head) {});
        *ret_used = used;
        return nullptr;
}

struct nd_error *nd_http_head_read(const char *bytes, size_t length, struct nd_http_head *ret, size_t *ret_used) {
        nd_autohead struct nd_http_head head = {};
        size_t used;

        *ret = (struct nd_http_head) {};
        *ret_used = 0;
        nd_try(read_head(bytes, length, read_request_line, &head, &used));
        nd_try(refuse_body(&head));
        *ret = nd_take(head, (struct nd_http_head) {});
        *ret_used = used;
        return nullptr;
}

struct nd_error *nd_http_answer_read(const char *bytes, size_t length, struct nd_http_head *ret, size_t *ret_used) {
        return read_head(bytes, length, read_status_line, ret, ret_used);
}

struct nd_error *nd_http_request_read(const char *bytes, size_t length, size_t body_most, struct nd_http_head *ret,
                                      const char **ret_body, size_t *ret_body_length, size_t *ret_used) {
        nd_autohead struct nd_http_head head = {};
        size_t used, body = 0;

        *ret = (struct nd_http_head) {};
        *ret_used = 0;
        nd_try(read_head(bytes, length, read_request_line, &head, &used));
        if (used == 0)
                return nullptr;
        nd_try(body_length(&head, body_most, &body));
        if (length - used < body)
                return nullptr;
        *ret_body = bytes + used;
        *ret_body_length = body;
        *ret = nd_take(head, (struct nd_http_head) {});
        *ret_used = used + body;
        return nullptr;
}

const char *nd_http_head_get(const struct nd_http_head *head, const char *name) {
        for (size_t i = 0; i < head->count; i++)
                if (strcasecmp(head->fields[i].name, name) == 0)
                        return head->fields[i].value;
        return nullptr;
}

/* Cuts the next item off the rest of a list; false if only commas and spaces are left. */
static bool next_item(struct nd_http_items *items) {
        size_t length;

        items->rest += strspn(items->rest, ", \t");
        length = strcspn(items->rest, ",");
        items->item = items->rest;
        items->rest += length;
        while (length > 0 && (items->item[length - 1] == ' ' || items->item[length - 1] == '\t'))
                length--;
        items->length = length;
        return length > 0;
}

bool nd_http_head_next(const struct nd_http_head *head, struct nd_http_items *items) {
        for (;;) {
                if (items->rest && next_item(items))
                        return true;
                while (items->field < head->count && strcasecmp(head->fields[items->field].name, items->name) != 0)
                        items->field++;
                if (items->field >= head->count)
                        return false;
                items->rest = head->fields[items->field++].value;
        }
}

bool nd_http_head_lists(const struct nd_http_head *head, const char *name, const char *item) {
        struct nd_http_items items = {.name = name};

        while (nd_http_head_next(head, &items))
                if (items.length == strlen(item) && strncasecmp(items.item, item, items.length) == 0)
                        return true;
        return false;
}

static const char *status_words(unsigned status) {
        switch (status) {
        case 101:
                return "Switching Protocols";
        case 200:
                return "OK";
        case 400:
                return "Bad Request";
        case 403:
                return "Forbidden";
        case 404:
                return "Not Found";
        case 405:
                return "Method Not Allowed";
        case 429:
                return "Too Many Requests";
        case 431:
                return "Request Header Fields Too Large";
        case 503:
                return "Service Unavailable";
        default:
                return "Internal Server Error";
        }
}

static bool is_clean(const char *value) {
        for (; *value; value++)
                if (is_control(*value))
                        return false;
        return true;
}

void nd_http_answer(struct nd_text *out, unsigned status, const struct nd_http_field *fields, const char *words) {
        nd_text_addf(out, "HTTP/1.1 %u %s\r\n", status, status_words(status));
        for (; fields && fields->name; fields++)
                if (is_clean(fields->value))
                        nd_text_addf(out, "%s: %s\r\n", fields->name, fields->value);
        if (status == 101) {
                nd_text_add(out, "\r\n");
                return;
        }
        words = words ? words : status_words(status);
        nd_text_addf(out,
                     "Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
                     "Content-Length: %zu\r\n\r\n%s\n",
                     strlen(words) + 1, words);
}

unsigned nd_http_status(const struct nd_error *error) {
        switch (nd_error_code(error)) {
        case ND_INVALID:
                return 400;
        case ND_DENIED:
                return 403;
        case ND_NOT_FOUND:
                return 404;
        case ND_EXHAUSTED:
                /* Here only an oversized head gives ND_EXHAUSTED; a busy server gives
                 * ND_UNAVAILABLE. */
                return 431;
        case ND_UNAVAILABLE:
                return 503;
        default:
                return 500;
        }
}
