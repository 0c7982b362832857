/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/config.h"

#include <fcntl.h>

#include "base/yaml.h"
#include "sys/file.h"

#ifndef ND_LIBEXEC
#define ND_LIBEXEC "/usr/libexec/nodens"
#endif

enum {
        CONFIG_CEILING = 1 << 20,
        PINNED_MOST = 100,
};

void cri_config_done(struct cri_config *config) {
        free(config->socket);
        free(config->images);
        free(config->certificates);
        free(config->pull_helper);
        nd_vector_each (name, &config->pinned) {
                free(*name);
        }
        nd_vector_done(&config->pinned);
        *config = (struct cri_config) {};
}

void cri_config_init(struct cri_config *ret) {
        *ret = (struct cri_config) {
                .socket = nd_strdup("/run/nodens/cri.sock"),
                .images = nd_strdup("/var/lib/nodens/images"),
                .certificates = nd_strdup("/etc/nodens/certs.d"),
                .pull_helper = nd_strdup(ND_LIBEXEC "/nodens-pull"),
                .pulls = 8,
                .downloads = 3,
                .stalled_s = 60,
        };
}

struct key {
        const char *name;
        enum { KEY_PATH, KEY_NUMBER, KEY_NAMES } kind;
        size_t offset;
        uint32_t least, most;
};

static const struct key keys[] = {
        {"socket", KEY_PATH, offsetof(struct cri_config, socket), 0, 0},
        {"images", KEY_PATH, offsetof(struct cri_config, images), 0, 0},
        {"certificates", KEY_PATH, offsetof(struct cri_config, certificates), 0, 0},
        {"pullHelper", KEY_PATH, offsetof(struct cri_config, pull_helper), 0, 0},
        {"parallelPulls", KEY_NUMBER, offsetof(struct cri_config, pulls), 1, 64},
        {"parallelDownloads", KEY_NUMBER, offsetof(struct cri_config, downloads), 1, 32},
        {"noProgressSeconds", KEY_NUMBER, offsetof(struct cri_config, stalled_s), 1, 3600},
        {"pinnedImages", KEY_NAMES, offsetof(struct cri_config, pinned), 0, 0},
};

static struct nd_error *take_path(const struct key *key, yyjson_val *value, void *field) {
        char **target = field;

        if (!yyjson_is_str(value) || yyjson_get_str(value)[0] != '/')
                return nd_error_new(ND_INVALID, 0, "%s must be an absolute path", key->name);
        free(*target);
        *target = nd_strdup(yyjson_get_str(value));
        return nullptr;
}

static struct nd_error *take_number(const struct key *key, yyjson_val *value, void *field) {
        if (!yyjson_is_uint(value) || yyjson_get_uint(value) < key->least || yyjson_get_uint(value) > key->most)
                return nd_error_new(ND_INVALID, 0, "%s must be a number from %u to %u", key->name, key->least, key->most);
        *(uint32_t *) field = (uint32_t) yyjson_get_uint(value);
        return nullptr;
}

static struct nd_error *take_names(const struct key *key, yyjson_val *value, struct cri_config *config) {
        yyjson_arr_iter names = yyjson_arr_iter_with(value);
        yyjson_val *name;

        if (!yyjson_is_arr(value) || yyjson_arr_size(value) > PINNED_MOST)
                return nd_error_new(ND_INVALID, 0, "%s must be a list of at most %d names", key->name, PINNED_MOST);
        while ((name = yyjson_arr_iter_next(&names))) {
                if (!yyjson_is_str(name))
                        return nd_error_new(ND_INVALID, 0, "%s must be a list of names", key->name);
                nd_vector_push(&config->pinned, nd_strdup(yyjson_get_str(name)));
        }
        return nullptr;
}

static struct nd_error *take_key(const char *name, yyjson_val *value, struct cri_config *config) {
        for (size_t i = 0; i < nd_count_of(keys); i++) {
                void *field = (char *) config + keys[i].offset;

                if (!nd_streq(keys[i].name, name))
                        continue;
                switch (keys[i].kind) {
                case KEY_PATH:
                        return take_path(&keys[i], value, field);
                case KEY_NUMBER:
                        return take_number(&keys[i], value, field);
                case KEY_NAMES:
                        return take_names(&keys[i], value, config);
                }
        }
        return nd_error_new(ND_INVALID, 0, "no key '%s'; the man page nodens-cri(8) lists them", name);
}

struct nd_error *cri_config_parse(const char *text, size_t length, struct cri_config *config) {
        nd_autojson doc = nullptr;
        yyjson_obj_iter members;
        yyjson_val *root, *key;

        nd_try(nd_yaml_parse(text, length, CONFIG_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (yyjson_is_null(root))
                return nullptr;
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "not a list of keys and values");
        members = yyjson_obj_iter_with(root);
        while ((key = yyjson_obj_iter_next(&members)))
                nd_try(take_key(unsafe_yyjson_get_str(key), yyjson_obj_iter_get_val(key), config));
        return nullptr;
}

struct nd_error *cri_config_read(const char *path, struct cri_config *ret) {
        nd_cleanup(cri_config_done) struct cri_config config = {};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;
        size_t length = 0;

        cri_config_init(&config);
        error = nd_file_read(AT_FDCWD, path ?: CRI_CONFIG_PATH, CONFIG_CEILING, &text, &length);
        if (error && (path || nd_error_code(error) != ND_NOT_FOUND))
                return nd_take_ptr(error);
        if (!error)
                nd_try(nd_error_wrap(cri_config_parse(text, length, &config), "%s", path ?: CRI_CONFIG_PATH));
        *ret = nd_take(config, (struct cri_config) {});
        return nullptr;
}
