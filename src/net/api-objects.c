/* SPDX-License-Identifier: Apache-2.0 */
#include "net/api-objects.h"

#include <string.h>

enum {
        WORDS = 1024, /* maximum length of a message from the server */
};

static const char *text_of(yyjson_val *value) {
        const char *text = yyjson_get_str(value);

        return text && !memchr(text, '\0', yyjson_get_len(value)) ? text : "";
}

void nd_api_page_done(struct nd_api_page *page) {
        yyjson_doc_free(page->doc);
        *page = (struct nd_api_page) {};
}

struct nd_error *nd_api_page_parse(const char *bytes, size_t length, struct nd_api_page *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root, *metadata, *items;

        nd_try(nd_error_wrap(nd_json_parse(bytes, length, ND_API_PAGE_BYTES, &doc), "parse list"));
        root = yyjson_doc_get_root(doc);
        metadata = yyjson_obj_get(root, "metadata");
        items = yyjson_obj_get(root, "items");
        if (!yyjson_is_obj(metadata) || (items && !yyjson_is_null(items) && !yyjson_is_arr(items)))
                return nd_error_new(ND_INVALID, 0, "response is not a list");
        *ret = (struct nd_api_page) {.doc = nd_take_ptr(doc),
                                     .items = yyjson_is_arr(items) ? items : nullptr,
                                     .version = text_of(yyjson_obj_get(metadata, "resourceVersion")),
                                     .continuation = text_of(yyjson_obj_get(metadata, "continue")),
                                     .remaining = yyjson_get_uint(yyjson_obj_get(metadata, "remainingItemCount"))};
        return nullptr;
}

const char *nd_api_name(yyjson_val *object) {
        return text_of(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "name"));
}

const char *nd_api_namespace(yyjson_val *object) {
        return text_of(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "namespace"));
}

const char *nd_api_version(yyjson_val *object) {
        return text_of(yyjson_obj_get(yyjson_obj_get(object, "metadata"), "resourceVersion"));
}

void nd_api_lines_done(struct nd_api_lines *lines) {
        nd_text_done(&lines->rest);
}

static struct nd_error *status_error(yyjson_val *status, long code) {
        const char *message = text_of(yyjson_obj_get(status, "message"));

        if (yyjson_is_uint(yyjson_obj_get(status, "code")))
                code = (long) (yyjson_get_uint(yyjson_obj_get(status, "code")) % 1000);
        return nd_error_received(code == 403   ? ND_DENIED
                                 : code == 401 ? ND_UNAUTHENTICATED
                                 : code == 404 ? ND_NOT_FOUND
                                 : code == 409 ? ND_ABORTED
                                 : code == 410 ? ND_OUT_OF_RANGE
                                 : code == 422 ? ND_INVALID
                                               : ND_UNAVAILABLE,
                                 (int) code, *message ? message : "no reason given");
}

static struct nd_error *take_line(struct nd_api_lines *lines, const char *bytes, size_t length) {
        static const struct {
                const char *type;
                enum nd_api_event event;
        } events[] = {
                {"ADDED", ND_API_PUT}, {"MODIFIED", ND_API_PUT}, {"DELETED", ND_API_REMOVED}, {"BOOKMARK", ND_API_BOOKMARK}};
        yyjson_val *root, *object;
        nd_autojson yyjson_doc *doc = nullptr;
        const char *type;

        if (length == 0)
                return nullptr;
        nd_try(nd_error_wrap(nd_json_parse(bytes, length, ND_API_OBJECT_BYTES, &doc), "parse watch event"));
        root = yyjson_doc_get_root(doc);
        object = yyjson_obj_get(root, "object");
        type = text_of(yyjson_obj_get(root, "type"));
        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "watch event has no object");
        if (nd_streq(type, "ERROR"))
                return status_error(object, 500);
        for (size_t i = 0; i < nd_count_of(events); i++)
                if (nd_streq(type, events[i].type))
                        return lines->take(events[i].event, object, lines->userdata);
        return nullptr; /* a type of a later API server */
}

struct nd_error *nd_api_lines_feed(struct nd_api_lines *lines, const char *bytes, size_t length) {
        const char *end;

        lines->rest.ceiling = ND_API_OBJECT_BYTES;
        while (length > 0 && (end = memchr(bytes, '\n', length))) {
                size_t part = (size_t) (end - bytes);

                if (lines->rest.length > 0) {
                        nd_text_append(&lines->rest, bytes, part);
                        if (lines->rest.overflow)
                                break;
                        nd_try(take_line(lines, lines->rest.bytes, lines->rest.length));
                        lines->rest.length = 0;
                } else {
                        nd_try(take_line(lines, bytes, part));
                }
                bytes += part + 1;
                length -= part + 1;
        }
        if (!lines->rest.overflow)
                nd_text_append(&lines->rest, bytes, length);
        if (lines->rest.overflow)
                return nd_error_new(ND_EXHAUSTED, 0, "watch event exceeds %d bytes", ND_API_OBJECT_BYTES);
        return nullptr;
}

struct nd_error *nd_api_refusal(long status, const char *body, size_t length) {
        nd_autotext struct nd_text words = ND_TEXT(WORDS);
        nd_autojson yyjson_doc *doc = nullptr;

        /* Not every error response is JSON. */
        nd_ignore(nd_json_parse(body, length, ND_API_OBJECT_BYTES, &doc));
        if (doc && yyjson_is_obj(yyjson_doc_get_root(doc)))
                return nd_error_wrap(status_error(yyjson_doc_get_root(doc), status), "HTTP %ld", status);
        nd_text_add_utf8(&words, body, length < WORDS / 4 ? length : WORDS / 4);
        return nd_error_wrap(nd_error_received(ND_UNAVAILABLE, (int) status, nd_text_get(&words)), "HTTP %ld", status);
}
