/* SPDX-License-Identifier: Apache-2.0 */
/* cdi.c - see cdi.h
 *
 * Theory of operation
 *   All files of all directories are read for each container that requests a device: there are
 *   few of both, and a vendor's daemon may have rewritten one just before. A device in a later
 *   directory overrides the same one in an earlier directory; a device that is defined twice in
 *   one directory is an error. An invalid file makes only its own devices unavailable; its error
 *   is reported when a device is not found. */
#include "cri/bundle/cdi.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/json-member.h"
#include "base/yaml.h"
#include "cri/core/config.h"
#include "sys/file.h"

/* ---- parsing a file ---- */

void cri_cdi_file_done(struct cri_cdi_file *file) {
        yyjson_doc_free(file->doc);
        *file = (struct cri_cdi_file) {};
}

static bool is_kind(const char *kind) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
        size_t vendor = strspn(kind, letters), class;

        if (vendor == 0 || kind[vendor] != '/')
                return false;
        class = strspn(kind + vendor + 1, letters);
        return class > 0 && kind[vendor + 1 + class] == '\0';
}

static struct nd_error *check_devices(yyjson_val *root) {
        yyjson_arr_iter devices;
        yyjson_val *list = nullptr, *device;

        nd_try(nd_json_member_array(root, "devices", CDI_ITEMS, &list));
        devices = yyjson_arr_iter_with(list);
        while ((device = yyjson_arr_iter_next(&devices))) {
                const char *name = nullptr;

                if (!yyjson_is_obj(device))
                        return nd_error_new(ND_INVALID, 0, "an entry of 'devices' is not an object");
                nd_try(nd_json_member_text(device, "name", CDI_TEXT, &name));
                if (!name || !*name)
                        return nd_error_new(ND_INVALID, 0, "an entry of 'devices' has no name");
        }
        return nullptr;
}

struct nd_error *cri_cdi_file_parse(const char *text, size_t length, bool yaml, struct cri_cdi_file *ret) {
        nd_autojson yyjson_doc *doc = nullptr;
        const char *version = nullptr, *kind = nullptr;
        yyjson_val *root;

        nd_try(yaml ? nd_yaml_parse(text, length, CDI_CEILING, &doc) : nd_json_parse(text, length, CDI_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "the CDI file is not an object");
        nd_try(nd_json_member_text(root, "cdiVersion", 64, &version));
        nd_try(nd_json_member_text(root, "kind", 512, &kind));
        if (!version || !*version)
                return nd_error_new(ND_INVALID, 0, "the CDI file has no cdiVersion");
        if (!kind || !is_kind(kind))
                return nd_error_new(ND_INVALID, 0, "invalid kind: it must be like vendor.com/class");
        nd_try(check_devices(root));
        *ret = (struct cri_cdi_file) {.doc = nd_take_ptr(doc), .kind = kind};
        return nullptr;
}

static yyjson_val *find_device(const struct cri_cdi_file *file, const char *device) {
        size_t kind = strlen(file->kind);
        yyjson_arr_iter devices = yyjson_arr_iter_with(yyjson_obj_get(yyjson_doc_get_root(file->doc), "devices"));
        yyjson_val *one;

        if (strncmp(device, file->kind, kind) != 0 || device[kind] != '=')
                return nullptr;
        while ((one = yyjson_arr_iter_next(&devices)))
                if (yyjson_equals_str(yyjson_obj_get(one, "name"), device + kind + 1))
                        return one;
        return nullptr;
}

bool cri_cdi_file_has(const struct cri_cdi_file *file, const char *device) {
        return find_device(file, device);
}

/* ---- edits ---- */

struct edit {
        struct nd_spec *spec;
        cri_cdi_look look;
};

static struct nd_error *path_member(yyjson_val *object, const char *key, const char **ret) {
        nd_try(nd_json_member_text(object, key, CDI_TEXT, ret));
        if (*ret && **ret != '/')
                return nd_error_new(ND_INVALID, 0, "%s '%.200s' is not an absolute path", key, *ret);
        return nullptr;
}

/* Overrides a variable that is already set. */
static struct nd_error *edit_env(const struct edit *edit, yyjson_val *value) {
        struct nd_strings *environment = &edit->spec->process.environment;
        const char *text = nullptr;
        size_t name;

        nd_try(nd_json_value_text(value, "env", CDI_TEXT, &text));
        name = text ? strcspn(text, "=") : 0;
        if (name == 0 || text[name] != '=')
                return nd_error_new(ND_INVALID, 0, "invalid entry of 'env': it must be like NAME=VALUE");
        nd_vector_each (known, environment) {
                if (strncmp(*known, text, name + 1) == 0) {
                        nd_strset(known, text);
                        return nullptr;
                }
        }
        nd_strings_add(environment, text);
        return nullptr;
}

struct node {
        const char *path, *host, *permissions;
        struct nd_spec_device device;
};

static struct nd_error *node_type(const char *type, char *ret) {
        if (type && (strlen(type) != 1 || !strchr("bcup", *type)))
                return nd_error_new(ND_INVALID, 0, "invalid device type '%.20s'", type);
        *ret = '\0';
        if (type)
                *ret = *type;
        if (*ret == 'u') /* a synonym */
                *ret = 'c';
        return nullptr;
}

/* A node belongs to the container's user, unless the file says otherwise. */
static uint32_t owner_of(yyjson_val *value, const char *key, uint64_t number, uint32_t user) {
        yyjson_val *given = yyjson_obj_get(value, key);

        return given && !yyjson_is_null(given) ? (uint32_t) number : user;
}

static struct nd_error *read_node(yyjson_val *value, const struct nd_spec_user *user, struct node *node) {
        uint64_t major = 0, minor = 0, mode = 0, uid = 0, gid = 0;
        const char *type = nullptr;

        nd_try(path_member(value, "path", &node->path));
        nd_try(path_member(value, "hostPath", &node->host));
        nd_try(nd_json_member_text(value, "permissions", 3, &node->permissions));
        nd_try(nd_json_member_text(value, "type", 8, &type));
        nd_try(node_type(type, &node->device.type));
        nd_try(nd_json_member_number(value, "major", UINT32_MAX, &major));
        nd_try(nd_json_member_number(value, "minor", UINT32_MAX, &minor));
        nd_try(nd_json_member_number(value, "fileMode", 07777, &mode));
        nd_try(nd_json_member_number(value, "uid", UINT32_MAX - 1, &uid));
        nd_try(nd_json_member_number(value, "gid", UINT32_MAX - 1, &gid));
        if (!node->path)
                return nd_error_new(ND_INVALID, 0, "a device node has no path");
        if (node->permissions && node->permissions[strspn(node->permissions, "rwm")])
                return nd_error_new(ND_INVALID, 0, "invalid permissions of '%.200s': only r, w and m are allowed", node->path);
        node->device.major = (uint32_t) major;
        node->device.minor = (uint32_t) minor;
        node->device.mode = (mode_t) mode;
        node->device.uid = owner_of(value, "uid", uid, user->uid);
        node->device.gid = owner_of(value, "gid", gid, user->gid);
        return nullptr;
}

/* Fills missing values from the device itself. */
static struct nd_error *complete_node(const struct edit *edit, struct node *node) {
        const char *host = node->host ?: node->path;
        struct stat st = {};
        int r;

        if (node->device.type == 'p' || (node->device.type && node->device.major > 0 && node->device.mode > 0))
                return nullptr;
        r = edit->look(host, &st);
        if (r < 0)
                return nd_error_new(nd_error_code_of(-r), -r, "stat device '%.200s'", host);
        if (!S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode))
                return nd_error_new(ND_INVALID, 0, "'%.200s' is not a device", host);
        if (!node->device.type || node->device.major == 0) {
                node->device.type = S_ISBLK(st.st_mode) ? 'b' : 'c';
                node->device.major = major(st.st_rdev);
                node->device.minor = minor(st.st_rdev);
        }
        if (node->device.mode == 0)
                node->device.mode = st.st_mode & 07777;
        return nullptr;
}

static void allow_node(const struct node *node, struct nd_spec *spec) {
        struct nd_spec_device_rule rule = {
                .allow = true, .type = node->device.type, .major = node->device.major, .minor = node->device.minor};

        if (rule.type == 'p')
                return;
        (void) snprintf(rule.access, sizeof rule.access, "%s",
                        node->permissions && *node->permissions ? node->permissions : "rwm");
        nd_vector_push(&spec->resources.devices, rule);
}

static void add_node(const struct node *node, struct nd_spec *spec) {
        struct nd_spec_device device = node->device;

        device.path = nd_strdup(node->path);
        device.own = spec->makes_devices;
        nd_spec_add_device(spec, node->host ?: node->path, &device);
}

static struct nd_error *edit_device(const struct edit *edit, yyjson_val *value) {
        struct node node = {};

        nd_try(read_node(value, &edit->spec->process.user, &node));
        nd_try(complete_node(edit, &node));
        add_node(&node, edit->spec);
        allow_node(&node, edit->spec);
        return nullptr;
}

static bool is_bind(const struct nd_strings *options) {
        return nd_strings_have(options, "bind") || nd_strings_have(options, "rbind");
}

static struct nd_error *edit_mount(const struct edit *edit, yyjson_val *value) {
        nd_cleanup(nd_strings_done) struct nd_strings options = {};
        const char *host = nullptr, *inside = nullptr, *type = nullptr;
        struct nd_spec_mount *mount;

        nd_try(nd_json_member_text(value, "hostPath", CDI_TEXT, &host));
        nd_try(path_member(value, "containerPath", &inside));
        nd_try(nd_json_member_text(value, "type", 64, &type));
        nd_try(nd_json_member_strings(value, "options", 64, 1024, &options));
        if (!host || !*host || !inside)
                return nd_error_new(ND_INVALID, 0, "a mount lacks hostPath or containerPath");
        type = type && *type && !nd_streq(type, "none") ? type : "bind";
        mount = nd_spec_add_mount(edit->spec, inside, nd_streq(type, "bind") ? nullptr : type, host);
        if (nd_streq(type, "bind") && !is_bind(&options))
                nd_spec_mount_option(mount, "rbind");
        nd_vector_each (option, &options) {
                nd_spec_mount_option(mount, *option);
        }
        return nullptr;
}

static struct nd_error *edit_hook(const struct edit *edit, yyjson_val *value) {
        nd_cleanup(nd_spec_hook_done) struct nd_spec_hook hook = {};
        const char *stage = nullptr, *path = nullptr;

        nd_try(nd_json_member_text(value, "hookName", 64, &stage));
        nd_try(path_member(value, "path", &path));
        hook.stage = nd_spec_hook_stage(stage ?: "");
        if (!hook.stage || !path)
                return nd_error_new(ND_INVALID, 0, "a hook has no path, or an invalid hookName");
        hook.path = nd_strdup(path);
        nd_try(nd_json_member_strings(value, "args", CDI_ITEMS, CDI_TEXT, &hook.arguments));
        nd_try(nd_json_member_strings(value, "env", CDI_ITEMS, CDI_TEXT, &hook.environment));
        nd_try(nd_json_member_number(value, "timeout", 3600, &hook.timeout_s));
        nd_vector_push(&edit->spec->hooks, nd_take(hook, (struct nd_spec_hook) {}));
        return nullptr;
}

static struct nd_error *edit_group(const struct edit *edit, yyjson_val *value) {
        if (!yyjson_is_uint(value) || yyjson_get_uint(value) == 0 || yyjson_get_uint(value) >= UINT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid group ID in additionalGids");
        nd_vector_push(&edit->spec->process.user.groups, (uint32_t) yyjson_get_uint(value));
        return nullptr;
}

static const struct {
        const char *key;
        bool objects;
        struct nd_error *(*take)(const struct edit *edit, yyjson_val *value);
} kinds[] = {
        {"env", false, edit_env},   {"deviceNodes", true, edit_device},    {"mounts", true, edit_mount},
        {"hooks", true, edit_hook}, {"additionalGids", false, edit_group},
};

static struct nd_error *edit_list(const struct edit *edit, size_t kind, yyjson_val *edits) {
        yyjson_arr_iter items;
        yyjson_val *list = nullptr, *item;

        nd_try(nd_json_member_array(edits, kinds[kind].key, CDI_ITEMS, &list));
        items = yyjson_arr_iter_with(list);
        while ((item = yyjson_arr_iter_next(&items))) {
                if (kinds[kind].objects && !yyjson_is_obj(item))
                        return nd_error_new(ND_INVALID, 0, "an entry of '%s' is not an object", kinds[kind].key);
                nd_try(kinds[kind].take(edit, item));
        }
        return nullptr;
}

static struct nd_error *check_keys(yyjson_val *edits) {
        yyjson_obj_iter members = yyjson_obj_iter_with(edits);
        yyjson_val *key;

        while ((key = yyjson_obj_iter_next(&members))) {
                bool known = yyjson_is_null(yyjson_obj_iter_get_val(key));

                for (size_t i = 0; !known && i < nd_count_of(kinds); i++)
                        known = yyjson_equals_str(key, kinds[i].key);
                if (!known)
                        return nd_error_new(ND_UNIMPLEMENTED, 0, "unsupported containerEdits member '%.100s'",
                                            yyjson_get_str(key));
        }
        return nullptr;
}

struct nd_error *cri_cdi_file_edit(const struct cri_cdi_file *file, const char *device, cri_cdi_look look,
                                   struct nd_spec *spec) {
        struct edit edit = {.spec = spec, .look = look};
        yyjson_val *holder = device ? find_device(file, device) : yyjson_doc_get_root(file->doc), *edits = nullptr;

        if (!holder)
                return nd_error_new(ND_NOT_FOUND, 0, "unknown device '%.200s'", device);
        nd_try(nd_json_member_object(holder, "containerEdits", &edits));
        if (!edits)
                return nullptr;
        nd_try(check_keys(edits));
        for (size_t i = 0; i < nd_count_of(kinds); i++)
                nd_try(edit_list(&edit, i, edits));
        return nullptr;
}

/* ---- directories ---- */

struct found {
        struct cri_cdi_file file;
        size_t directory; /* the last one takes precedence */
        bool used;
};

struct library {
        nd_vector(struct found) files;
        struct nd_text complaints;
};

static void library_done(struct library *library) {
        nd_vector_each (found, &library->files)
                cri_cdi_file_done(&found->file);
        nd_vector_done(&library->files);
        nd_text_done(&library->complaints);
}

static struct nd_error *read_file(const char *directory, const char *name, bool yaml, struct cri_cdi_file *ret) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *text = nullptr;
        size_t length = 0;

        nd_try(nd_file_read(AT_FDCWD, path, CDI_CEILING, &text, &length));
        return nd_error_wrap(cri_cdi_file_parse(text, length, yaml, ret), "'%s'", path);
}

static void read_directory(struct library *library, const char *directory, size_t number) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_autoerror struct nd_error *error = nd_dir_list_files(AT_FDCWD, directory, CDI_FILES, &names);

        if (error && nd_error_code(error) != ND_NOT_FOUND)
                nd_text_addf(&library->complaints, "; %s", nd_error_text(error));
        nd_vector_each (name, &names) {
                const char *dot = strrchr(*name, '.');
                bool yaml = dot && (nd_streq(dot, ".yaml") || nd_streq(dot, ".yml"));
                nd_autoerror struct nd_error *problem = nullptr;
                struct found found = {.directory = number};

                if (!yaml && !(dot && nd_streq(dot, ".json")))
                        continue;
                problem = read_file(directory, *name, yaml, &found.file);
                if (problem)
                        nd_text_addf(&library->complaints, "; %s", nd_error_text(problem));
                else
                        nd_vector_push(&library->files, found);
        }
}

static void read_all(const char *directories, struct library *library) {
        nd_autofree char *copy = nd_strdup(directories);
        char *rest = copy, *directory;

        for (size_t number = 0; (directory = strsep(&rest, ":")); number++)
                read_directory(library, directory, number);
}

/* Returns nullptr and sets the error if there is none. */
static struct found *find_in(struct library *library, const char *device, const char *directories,
                             struct nd_error **ret_error) {
        struct found *best = nullptr;
        bool twice = false;

        nd_vector_each (found, &library->files) {
                if (!cri_cdi_file_has(&found->file, device))
                        continue;
                twice = best && best->directory == found->directory;
                if (!best || found->directory >= best->directory)
                        best = found;
        }
        if (!best)
                *ret_error = nd_error_new(ND_PRECONDITION, 0, "not defined by any file in %s%s", directories,
                                          nd_text_get(&library->complaints));
        else if (twice)
                *ret_error = nd_error_new(ND_PRECONDITION, 0, "defined by two files of one directory: remove one");
        return *ret_error ? nullptr : best;
}

static int look(const char *path, struct stat *ret) {
        return stat(path, ret) < 0 ? -errno : 0;
}

static struct nd_error *add(struct library *library, const char *device, const char *directories, struct nd_spec *spec) {
        struct nd_error *error = nullptr;
        struct found *found = find_in(library, device, directories, &error);

        if (!found)
                return error;
        if (!found->used)
                nd_try(cri_cdi_file_edit(&found->file, nullptr, look, spec));
        found->used = true;
        return cri_cdi_file_edit(&found->file, device, look, spec);
}

struct nd_error *cri_cdi_describe(const struct cri_config *config, const struct nd_strings *devices, struct nd_spec *spec) {
        nd_cleanup(library_done) struct library library = {.complaints = ND_TEXT(2048)};

        if (devices->count == 0)
                return nullptr;
        read_all(config->cdi, &library);
        nd_vector_each (device, devices)
                nd_try(nd_error_wrap(add(&library, *device, config->cdi, spec), "CDI device '%s'", *device));
        return nullptr;
}
