/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json-member.h"

#include <string.h>

/* The member's value, nullptr if it is absent or null. */
static struct nd_error *find(yyjson_val *object, const char *key, yyjson_val **ret) {
        yyjson_obj_iter iterator = yyjson_obj_iter_with(object);
        yyjson_val *name, *found = nullptr;

        while ((name = yyjson_obj_iter_next(&iterator))) {
                if (!yyjson_equals_str(name, key))
                        continue;
                if (found)
                        return nd_error_new(ND_INVALID, 0, "'%s' is given twice", key);
                found = yyjson_obj_iter_get_val(name);
        }
        *ret = yyjson_is_null(found) ? nullptr : found;
        return nullptr;
}

static struct nd_error *wrong_type(const char *key, yyjson_val *value, const char *wanted) {
        return nd_error_new(ND_INVALID, 0, "'%s' is %s, not %s", key, yyjson_get_type_desc(value), wanted);
}

struct nd_error *nd_json_value_text(yyjson_val *value, const char *name, size_t ceiling, const char **ret) {
        if (!yyjson_is_str(value))
                return wrong_type(name, value, "a string");
        if (yyjson_get_len(value) > ceiling)
                return nd_error_new(ND_INVALID, 0, "'%s' is longer than %zu bytes", name, ceiling);
        if (strlen(yyjson_get_str(value)) != yyjson_get_len(value))
                return nd_error_new(ND_INVALID, 0, "'%s' has a null byte in it", name);
        *ret = yyjson_get_str(value);
        return nullptr;
}

struct nd_error *nd_json_member_text(yyjson_val *object, const char *key, size_t ceiling, const char **ret) {
        yyjson_val *value = nullptr;

        nd_try(find(object, key, &value));
        if (value)
                return nd_json_value_text(value, key, ceiling, ret);
        *ret = nullptr;
        return nullptr;
}

struct nd_error *nd_json_member_object(yyjson_val *object, const char *key, yyjson_val **ret) {
        yyjson_val *value = nullptr;

        nd_try(find(object, key, &value));
        if (value && !yyjson_is_obj(value))
                return wrong_type(key, value, "an object");
        *ret = value;
        return nullptr;
}

struct nd_error *nd_json_member_array(yyjson_val *object, const char *key, size_t ceiling, yyjson_val **ret) {
        yyjson_val *value = nullptr;

        nd_try(find(object, key, &value));
        if (value && !yyjson_is_arr(value))
                return wrong_type(key, value, "an array");
        if (yyjson_arr_size(value) > ceiling)
                return nd_error_new(ND_INVALID, 0, "'%s' has %zu entries, at most %zu are taken", key, yyjson_arr_size(value),
                                    ceiling);
        *ret = value;
        return nullptr;
}

struct nd_error *nd_json_member_number(yyjson_val *object, const char *key, uint64_t ceiling, uint64_t *ret) {
        yyjson_val *value = nullptr;

        nd_try(find(object, key, &value));
        if (value && yyjson_is_sint(value) && yyjson_get_sint(value) < 0)
                return nd_error_new(ND_INVALID, 0, "'%s' is negative", key);
        if (value && !yyjson_is_uint(value))
                return wrong_type(key, value, "a whole number");
        if (yyjson_get_uint(value) > ceiling)
                return nd_error_new(ND_INVALID, 0, "'%s' is larger than %llu", key, (unsigned long long) ceiling);
        *ret = yyjson_get_uint(value);
        return nullptr;
}

struct nd_error *nd_json_member_bool(yyjson_val *object, const char *key, bool *ret) {
        yyjson_val *value = nullptr;

        nd_try(find(object, key, &value));
        if (value && !yyjson_is_bool(value))
                return wrong_type(key, value, "true or false");
        *ret = yyjson_is_true(value);
        return nullptr;
}

struct nd_error *nd_json_member_strings(yyjson_val *object, const char *key, size_t count_ceiling, size_t length_ceiling,
                                        struct nd_strings *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings strings = {};
        yyjson_arr_iter iterator;
        yyjson_val *array, *value;
        const char *text = nullptr;

        nd_try(nd_json_member_array(object, key, count_ceiling, &array));
        iterator = yyjson_arr_iter_with(array);
        while ((value = yyjson_arr_iter_next(&iterator))) {
                nd_try(nd_json_value_text(value, key, length_ceiling, &text));
                nd_strings_add(&strings, text);
        }
        *ret = nd_take(strings, (struct nd_strings) {});
        return nullptr;
}
