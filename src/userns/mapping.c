/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/mapping.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"

static struct nd_error *wrong_type(const char *what) {
        return nd_error_new(ND_INVALID, 0, "%s has the wrong type", what);
}

/* Go's decoder matches keys case-insensitively, where U+017F equals s (and U+212A equals k, which
 * none of our keys contains). */
static bool key_is(yyjson_val *key, const char *name) {
        static const char long_s[] = "\u017f";
        /* a key is always a string */
        const char *at = unsafe_yyjson_get_str(key), *end = at + yyjson_get_len(key);

        for (; *name; name++) {
                if (tolower(*name) == 's' && (size_t) (end - at) >= sizeof long_s - 1 &&
                    memcmp(at, long_s, sizeof long_s - 1) == 0)
                        at += sizeof long_s - 1;
                else if (at == end || tolower((unsigned char) *at++) != tolower(*name))
                        return false;
        }
        return at == end; /* the key may contain a null byte, followed by more */
}

/* A uint32 as in Go: digits only, null leaves the value unchanged. */
static struct nd_error *take_number(yyjson_val *value, const char *what, uint32_t *target) {
        if (yyjson_is_null(value))
                return nullptr;
        if (!yyjson_is_uint(value) || yyjson_get_uint(value) > UINT32_MAX)
                return wrong_type(what);
        *target = (uint32_t) yyjson_get_uint(value);
        return nullptr;
}

/* A later key overwrites an earlier one field by field, as in Go; hence the target is not
 * cleared. */
static struct nd_error *take_line(yyjson_val *object, struct nd_mapping_line *target) {
        const struct {
                const char *key;
                uint32_t *field;
        } fields[] = {{"hostId", &target->host}, {"containerId", &target->container}, {"length", &target->length}};
        yyjson_obj_iter members = yyjson_obj_iter_with(object);
        yyjson_val *key;

        if (yyjson_is_null(object))
                return nullptr;
        if (!yyjson_is_obj(object))
                return wrong_type("a mapping");
        while ((key = yyjson_obj_iter_next(&members)))
                for (size_t i = 0; i < nd_count_of(fields); i++)
                        if (key_is(key, fields[i].key))
                                nd_try(take_number(yyjson_obj_iter_get_val(key), fields[i].key, fields[i].field));
        return nullptr;
}

static struct nd_error *take_lines(yyjson_val *array, const char *what, size_t *count, struct nd_mapping_line *first) {
        struct nd_mapping_line ignored = {};
        yyjson_arr_iter lines;
        yyjson_val *line;

        if (!yyjson_is_null(array) && !yyjson_is_arr(array))
                return wrong_type(what);
        *count = yyjson_arr_size(array);
        if (*count == 0) {
                *first = (struct nd_mapping_line) {};
                return nullptr;
        }
        nd_try(take_line(yyjson_arr_get_first(array), first));
        lines = yyjson_arr_iter_with(array);
        while ((line = yyjson_arr_iter_next(&lines)))
                nd_try(take_line(line, &ignored));
        return nullptr;
}

static struct nd_error *take_document(yyjson_val *root, struct nd_mapping *mapping) {
        yyjson_obj_iter members = yyjson_obj_iter_with(root);
        yyjson_val *key;

        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_obj(root))
                return wrong_type("the document");
        while ((key = yyjson_obj_iter_next(&members))) {
                yyjson_val *value = yyjson_obj_iter_get_val(key);

                if (key_is(key, "uidMappings"))
                        nd_try(take_lines(value, "uidMappings", &mapping->uid_lines, &mapping->uid));
                else if (key_is(key, "gidMappings"))
                        nd_try(take_lines(value, "gidMappings", &mapping->gid_lines, &mapping->gid));
        }
        return nullptr;
}

struct nd_error *nd_mapping_parse(const char *bytes, size_t length, struct nd_mapping *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        struct nd_mapping mapping = {};
        struct nd_error *error = nd_json_parse(bytes, length, ND_MAPPING_CEILING, &doc);

        if (!error)
                error = take_document(yyjson_doc_get_root(doc), &mapping);
        if (error)
                return nd_error_wrap(error, "invalid user namespace mappings file");
        *ret = mapping;
        return nullptr;
}

struct nd_error *nd_mapping_check(const struct nd_mapping *mapping) {
        static const char prefix[] = "invalid user namespace configuration: ";
        const struct nd_mapping_line *u = &mapping->uid, *g = &mapping->gid;

        if (mapping->uid_lines != 1)
                return nd_error_new(ND_INVALID, 0, "%sno more than one mapping allowed.", prefix);
        if (mapping->uid_lines != mapping->gid_lines)
                return nd_error_new(ND_INVALID, 0, "%sGID and UID mappings should be identical.", prefix);
        if (u->host != g->host || u->container != g->container || u->length != g->length)
                return nd_error_new(ND_INVALID, 0, "%sGID and UID mapping should be identical", prefix);
        if (u->container != 0)
                return nd_error_new(ND_INVALID, 0, "%sUID 0 must be mapped", prefix);
        return nullptr;
}

char *nd_mapping_format(uint32_t host, uint32_t length) {
        nd_autofree char *line = nd_format("[{\"hostId\":%u,\"containerId\":0,\"length\":%u}]", host, length);

        return nd_format("{\"uidMappings\":%s,\"gidMappings\":%s}", line, line);
}

void nd_mapping_salvage(const char *bytes, size_t length, struct nd_userns_extents *ret) {
        static const char key[] = "hostId";

        *ret = (struct nd_userns_extents) {};
        for (size_t i = 0; i + sizeof key < length && ret->count < ND_MAPPING_SALVAGE; i++) {
                uint64_t value = 0;
                size_t at = i + sizeof key - 1, digits = 0;

                if (strncasecmp(bytes + i, key, sizeof key - 1) != 0)
                        continue;
                while (at < length && strchr("\": \t\r\n", bytes[at]) && bytes[at])
                        at++;
                for (; at < length && bytes[at] >= '0' && bytes[at] <= '9' && value < ND_ID_SPACE; at++, digits++)
                        value = value * 10 + (uint64_t) (bytes[at] - '0');
                if (digits > 0 && value < ND_ID_SPACE)
                        nd_vector_push(ret, ((struct nd_userns_extent) {.first = value, .count = 1}));
        }
}
