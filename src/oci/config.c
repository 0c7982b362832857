/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config.h"

#include <string.h>

#include "base/json-member.h"
#include "oci/manifest.h"

enum {
        STOP_SIGNAL_CEILING = 64,
        PORT_CEILING = 64,
};

void nd_oci_config_done(struct nd_oci_config *config) {
        nd_vector_done(&config->diff_ids);
        free(config->user);
        nd_strings_done(&config->environment);
        nd_strings_done(&config->entrypoint);
        nd_strings_done(&config->command);
        free(config->working_directory);
        free(config->stop_signal);
        nd_strings_done(&config->volumes);
        nd_strings_done(&config->ports);
        nd_vector_each (label, &config->labels) {
                free(label->key);
                free(label->value);
        }
        nd_vector_done(&config->labels);
        *config = (struct nd_oci_config) {};
}

static struct nd_error *parse_platform(yyjson_val *root, struct nd_platform *ret) {
        const char *os, *architecture, *variant;

        nd_try(nd_json_member_text(root, "os", ND_PLATFORM_FIELD - 1, &os));
        nd_try(nd_json_member_text(root, "architecture", ND_PLATFORM_FIELD - 1, &architecture));
        nd_try(nd_json_member_text(root, "variant", ND_PLATFORM_FIELD - 1, &variant));
        if (!nd_platform_make(os, architecture, variant, ret))
                return nd_error_new(ND_INVALID, 0, "its platform is not plain text");
        return nullptr;
}

static struct nd_error *parse_diff_ids(yyjson_val *root, struct nd_oci_config *ret) {
        yyjson_val *rootfs, *array, *value;
        yyjson_arr_iter iterator;
        struct nd_digest digest;
        const char *text;

        nd_try(nd_json_member_object(root, "rootfs", &rootfs));
        if (!rootfs)
                return nd_error_new(ND_INVALID, 0, "it has no 'rootfs', which lists the layers");
        nd_try(nd_json_member_text(rootfs, "type", PORT_CEILING, &text));
        if (text && !nd_streq(text, "layers"))
                return nd_error_new(ND_INVALID, 0, "'rootfs' is not of the type \"layers\"");
        nd_try(nd_json_member_array(rootfs, "diff_ids", ND_MANIFEST_LAYERS, &array));
        iterator = yyjson_arr_iter_with(array);
        while ((value = yyjson_arr_iter_next(&iterator))) {
                nd_try(nd_json_value_text(value, "diff_ids", ND_DIGEST_TEXT, &text));
                nd_try(nd_error_wrap(nd_digest_parse(text, &digest), "'diff_ids'"));
                if (digest.kind != ND_HASH_SHA256)
                        return nd_error_new(ND_UNIMPLEMENTED, 0, "'diff_ids': layers are identified by sha256 only");
                nd_vector_push(&ret->diff_ids, digest);
        }
        return nullptr;
}

/* The keys of an object; sets are written like this: {"/data": {}}. */
static struct nd_error *parse_set(yyjson_val *object, const char *key, size_t ceiling, struct nd_strings *ret) {
        yyjson_obj_iter iterator;
        yyjson_val *set, *name;
        const char *text;

        nd_try(nd_json_member_object(object, key, &set));
        if (yyjson_obj_size(set) > ND_CONFIG_STRINGS)
                return nd_error_new(ND_INVALID, 0, "'%s' has more than %d entries", key, ND_CONFIG_STRINGS);
        iterator = yyjson_obj_iter_with(set);
        while ((name = yyjson_obj_iter_next(&iterator))) {
                nd_try(nd_json_value_text(name, key, ceiling, &text));
                nd_strings_add(ret, text);
        }
        return nullptr;
}

static struct nd_error *parse_labels(yyjson_val *object, struct nd_oci_config *ret) {
        yyjson_obj_iter iterator;
        yyjson_val *labels, *name;
        const char *key, *value;

        nd_try(nd_json_member_object(object, "Labels", &labels));
        if (yyjson_obj_size(labels) > ND_CONFIG_STRINGS)
                return nd_error_new(ND_INVALID, 0, "'Labels' has more than %d entries", ND_CONFIG_STRINGS);
        iterator = yyjson_obj_iter_with(labels);
        while ((name = yyjson_obj_iter_next(&iterator))) {
                nd_try(nd_json_value_text(name, "Labels", ND_CONFIG_CEILING, &key));
                nd_try(nd_json_value_text(yyjson_obj_iter_get_val(name), "Labels", ND_CONFIG_CEILING, &value));
                nd_vector_push(&ret->labels, ((struct nd_oci_label) {.key = nd_strdup(key), .value = nd_strdup(value)}));
        }
        return nullptr;
}

static struct nd_error *parse_environment(yyjson_val *object, struct nd_oci_config *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings all = {};

        nd_try(nd_json_member_strings(object, "Env", ND_CONFIG_STRINGS, ND_CONFIG_STRING, &all));
        nd_vector_each (entry, &all) {
                if (strchr(*entry, '=') && **entry != '=')
                        nd_strings_add(&ret->environment, *entry);
        }
        return nullptr;
}

static bool has_control(const char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ' || *text == '\x7f')
                        return true;
        return false;
}

/* A short text for messages, records and files: no control characters. */
static struct nd_error *parse_plain(yyjson_val *object, const char *key, size_t ceiling, char **ret) {
        const char *text = nullptr;

        if (object)
                nd_try(nd_json_member_text(object, key, ceiling, &text));
        if (text && has_control(text))
                return nd_error_new(ND_INVALID, 0, "'%s' has control characters in it", key);
        *ret = nd_strdup(text ? text : "");
        return nullptr;
}

static struct nd_error *parse_process(yyjson_val *object, struct nd_oci_config *ret) {
        nd_try(parse_plain(object, "User", ND_CONFIG_USER, &ret->user));
        nd_try(parse_plain(object, "WorkingDir", ND_CONFIG_PATH, &ret->working_directory));
        nd_try(parse_plain(object, "StopSignal", STOP_SIGNAL_CEILING, &ret->stop_signal));
        if (!object)
                return nullptr;
        nd_try(parse_environment(object, ret));
        nd_try(nd_json_member_strings(object, "Entrypoint", ND_CONFIG_STRINGS, ND_CONFIG_STRING, &ret->entrypoint));
        nd_try(nd_json_member_strings(object, "Cmd", ND_CONFIG_STRINGS, ND_CONFIG_STRING, &ret->command));
        nd_try(parse_set(object, "Volumes", ND_CONFIG_PATH, &ret->volumes));
        nd_try(parse_set(object, "ExposedPorts", PORT_CEILING, &ret->ports));
        return parse_labels(object, ret);
}

static struct nd_error *parse(const char *bytes, size_t length, struct nd_oci_config *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root, *process;

        nd_try(nd_json_parse(bytes, length, ND_CONFIG_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "it is not a JSON object");
        nd_try(parse_platform(root, &ret->platform));
        nd_try(parse_diff_ids(root, ret));
        nd_try(nd_json_member_object(root, "config", &process));
        return nd_error_wrap(parse_process(process, ret), "'config'");
}

struct nd_error *nd_oci_config_parse(const char *bytes, size_t length, struct nd_oci_config *ret) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};

        nd_try(nd_error_wrap(parse(bytes, length, &config), "image config"));
        *ret = nd_take(config, (struct nd_oci_config) {});
        return nullptr;
}

void nd_oci_config_of_artifact(const struct nd_manifest *artifact, struct nd_oci_config *ret) {
        ret->user = nd_strdup("");
        nd_vector_each (layer, &artifact->entries) {
                nd_vector_push(&ret->diff_ids, layer->diff_id);
        }
}

void nd_oci_user_done(struct nd_oci_user *user) {
        free(user->user);
        free(user->group);
        *user = (struct nd_oci_user) {};
}

static bool all_digits(const char *text) {
        return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* One half of "user:group": a number, a name or empty. */
static struct nd_error *parse_half(const char *what, const char *text, bool *ret_has_id, uint32_t *ret_id, char **ret_name) {
        nd_autofree char *quoted = nullptr;
        uint64_t number;

        if (text[0] == '\0')
                return nullptr;
        if (all_digits(text) && nd_text_parse_u64(text, INT32_MAX, &number) == 0) {
                *ret_has_id = true;
                *ret_id = (uint32_t) number;
                return nullptr;
        }
        quoted = nd_text_quote(text);
        if (all_digits(text))
                return nd_error_new(ND_INVALID, ERANGE, "the image's %s %s is not below 2147483648", what, quoted);
        if (text[0] == '-' || text[0] == '+' || strpbrk(text, "/:") || has_control(text))
                return nd_error_new(ND_INVALID, 0, "the image's %s %s is neither a number nor a name", what, quoted);
        *ret_name = nd_strdup(text);
        return nullptr;
}

struct nd_error *nd_oci_user_parse(const char *text, struct nd_oci_user *ret) {
        nd_cleanup(nd_oci_user_done) struct nd_oci_user user = {};
        nd_autofree char *half = nullptr;
        const char *colon = strchr(text, ':');

        if (strlen(text) > ND_CONFIG_USER)
                return nd_error_new(ND_INVALID, 0, "the image's user is longer than %d bytes", ND_CONFIG_USER);
        half = nd_strndup(text, colon ? (size_t) (colon - text) : strlen(text));
        nd_try(parse_half("user", half, &user.has_uid, &user.uid, &user.user));
        if (colon)
                nd_try(parse_half("group", colon + 1, &user.has_gid, &user.gid, &user.group));
        *ret = nd_take(user, (struct nd_oci_user) {});
        return nullptr;
}
