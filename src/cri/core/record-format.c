/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/core/record-format.h"

#include <limits.h>
#include <string.h>

#include "base/json-member.h"

enum {
        TEXT_CEILING = 1 << 20, /* bytes of one member */
        ADDRESSES = 64,
        GROUPS = 65536,
        MOUNTED = 4096, /* images mounted as volumes */
        MAPPINGS = 65536,
        PAIRS = 10000,
        BOOT_CEILING = 64,
};

/* ---- plain members, by table ---- */

enum kind {
        KIND_INT,
        KIND_UNSIGNED,
        KIND_U32,
        KIND_U64,
        KIND_I64,
        KIND_BOOL,
        KIND_TEXT,     /* char *, "" when absent */
        KIND_NULLABLE, /* char *, nullptr when absent */
};

struct field {
        const char *name;
        enum kind kind;
        size_t offset;
};

static const struct field sandbox_fields[] = {
        {"made", KIND_UNSIGNED, offsetof(struct cri_sandbox, made)},
        {"createdAt", KIND_U64, offsetof(struct cri_sandbox, created_at)},
        {"oomKills", KIND_U64, offsetof(struct cri_sandbox, oom_kills)},
        {"networkResult", KIND_NULLABLE, offsetof(struct cri_sandbox, network_result)},
};

static const struct field container_fields[] = {
        {"made", KIND_UNSIGNED, offsetof(struct cri_container, made)},
        {"internal", KIND_BOOL, offsetof(struct cri_container, internal)},
        {"started", KIND_BOOL, offsetof(struct cri_container, started)},
        {"imageReference", KIND_TEXT, offsetof(struct cri_container, image_reference)},
        {"createdAt", KIND_U64, offsetof(struct cri_container, created_at)},
        {"startedAt", KIND_U64, offsetof(struct cri_container, started_at)},
        {"finishedAt", KIND_U64, offsetof(struct cri_container, finished_at)},
        {"exitCode", KIND_INT, offsetof(struct cri_container, exit_code)},
        {"reason", KIND_TEXT, offsetof(struct cri_container, reason)},
        {"message", KIND_TEXT, offsetof(struct cri_container, message)},
        {"pid", KIND_INT, offsetof(struct cri_container, pid)},
        {"pidBirth", KIND_U64, offsetof(struct cri_container, pid_birth)},
        {"uid", KIND_U32, offsetof(struct cri_container, user.uid)},
        {"gid", KIND_U32, offsetof(struct cri_container, user.gid)},
        {"stopSignal", KIND_INT, offsetof(struct cri_container, stop_signal)},
        {"logPath", KIND_TEXT, offsetof(struct cri_container, log_path)},
        {"cgroup", KIND_TEXT, offsetof(struct cri_container, cgroup)},
        {"monitorCgroup", KIND_TEXT, offsetof(struct cri_container, monitor_cgroup)},
        {"verdict", KIND_TEXT, offsetof(struct cri_container, checks_json)},
};
static_assert(sizeof(pid_t) == sizeof(int));

static const struct field resource_fields[] = {
        {"cpuPeriod", KIND_I64, offsetof(struct cri_resource_request, cpu_period)},
        {"cpuQuota", KIND_I64, offsetof(struct cri_resource_request, cpu_quota)},
        {"cpuShares", KIND_I64, offsetof(struct cri_resource_request, cpu_shares)},
        {"memory", KIND_I64, offsetof(struct cri_resource_request, memory_limit)},
        {"memorySwap", KIND_I64, offsetof(struct cri_resource_request, memory_swap_limit)},
        {"oomScoreAdj", KIND_I64, offsetof(struct cri_resource_request, oom_score_adj)},
        {"cpus", KIND_TEXT, offsetof(struct cri_resource_request, cpuset_cpus)},
        {"mems", KIND_TEXT, offsetof(struct cri_resource_request, cpuset_mems)},
};

static void write_field(struct nd_json_out *out, const struct field *field, const void *object) {
        const void *at = (const char *) object + field->offset;

        switch (field->kind) {
        case KIND_INT:
                nd_json_signed(out, field->name, *(const int *) at);
                return;
        case KIND_UNSIGNED:
                nd_json_number(out, field->name, *(const unsigned *) at);
                return;
        case KIND_U32:
                nd_json_number(out, field->name, *(const uint32_t *) at);
                return;
        case KIND_U64:
                nd_json_number(out, field->name, *(const uint64_t *) at);
                return;
        case KIND_I64:
                nd_json_signed(out, field->name, *(const int64_t *) at);
                return;
        case KIND_BOOL:
                nd_json_bool(out, field->name, *(const bool *) at);
                return;
        case KIND_TEXT:
                nd_json_string(out, field->name, *(char *const *) at ?: "");
                return;
        case KIND_NULLABLE:
                if (*(char *const *) at)
                        nd_json_string(out, field->name, *(char *const *) at);
                return;
        }
}

static void write_fields(struct nd_json_out *out, const struct field *fields, size_t count, const void *object) {
        for (size_t i = 0; i < count; i++)
                write_field(out, &fields[i], object);
}

static struct nd_error *read_signed(yyjson_val *object, const char *name, int64_t least, int64_t most, int64_t *ret) {
        yyjson_val *value = yyjson_obj_get(object, name);

        if (!value)
                return nullptr;
        if (!yyjson_is_int(value) || (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX) ||
            yyjson_get_sint(value) < least || yyjson_get_sint(value) > most)
                return nd_error_new(ND_INVALID, 0, "'%s' is not an integer in its range", name);
        *ret = yyjson_get_sint(value);
        return nullptr;
}

static struct nd_error *read_text(yyjson_val *object, const char *name, bool nullable, char **ret) {
        const char *text = nullptr;

        nd_try(nd_json_member_text(object, name, TEXT_CEILING, &text));
        free(*ret);
        *ret = text || !nullable ? nd_strdup(text ?: "") : nullptr;
        return nullptr;
}

static struct nd_error *read_unsigned(yyjson_val *object, const char *name, uint64_t ceiling, uint64_t former, uint64_t *ret) {
        *ret = former;
        return yyjson_obj_get(object, name) ? nd_json_member_number(object, name, ceiling, ret) : nullptr;
}

static struct nd_error *read_field(yyjson_val *object, const struct field *field, void *target) {
        void *at = (char *) target + field->offset;
        uint64_t number = 0;
        int64_t integer;

        switch (field->kind) {
        case KIND_INT:
                integer = *(int *) at;
                nd_try(read_signed(object, field->name, INT_MIN, INT_MAX, &integer));
                *(int *) at = (int) integer;
                return nullptr;
        case KIND_UNSIGNED:
                nd_try(read_unsigned(object, field->name, UINT_MAX, *(unsigned *) at, &number));
                *(unsigned *) at = (unsigned) number;
                return nullptr;
        case KIND_U32:
                nd_try(read_unsigned(object, field->name, UINT32_MAX, *(uint32_t *) at, &number));
                *(uint32_t *) at = (uint32_t) number;
                return nullptr;
        case KIND_U64:
                nd_try(read_unsigned(object, field->name, UINT64_MAX, *(uint64_t *) at, &number));
                *(uint64_t *) at = number;
                return nullptr;
        case KIND_I64:
                return read_signed(object, field->name, INT64_MIN, INT64_MAX, at);
        case KIND_BOOL:
                return nd_json_member_bool(object, field->name, at);
        case KIND_TEXT:
                return read_text(object, field->name, false, at);
        case KIND_NULLABLE:
                return read_text(object, field->name, true, at);
        }
        return nullptr;
}

static struct nd_error *read_fields(yyjson_val *object, const struct field *fields, size_t count, void *target) {
        for (size_t i = 0; i < count; i++)
                nd_try(read_field(object, &fields[i], target));
        return nullptr;
}

/* ---- names of states ---- */

static const char *const sandbox_states[] = {
        [SANDBOX_NEW] = "new",
        [SANDBOX_READY] = "ready",
        [SANDBOX_NOTREADY] = "notready",
        [SANDBOX_REMOVED] = "removed",
};

static const char *const container_states[] = {
        [CONTAINER_NEW + 1] = "new",       [CONTAINER_CREATED + 1] = "created", [CONTAINER_RUNNING + 1] = "running",
        [CONTAINER_EXITED + 1] = "exited", [CONTAINER_UNKNOWN + 1] = "unknown", [CONTAINER_REMOVED + 1] = "removed",
};

const char *cri_sandbox_state_name(enum cri_sandbox_state state) {
        return sandbox_states[state];
}

const char *cri_container_state_name(enum cri_container_state state) {
        return container_states[state + 1];
}

static const char *const mappings[] = {
        [MAPPING_UNKNOWN] = "",        [MAPPING_NONE] = "none",       [MAPPING_IDMAPPED] = "idmapped",
        [MAPPING_CHOWNED] = "chowned", [MAPPING_BRIDGED] = "bridged",
};

const char *cri_mapping_name(enum cri_mapping how) {
        return mappings[how];
}

static struct nd_error *read_state(yyjson_val *object, const char *const *names, size_t count, size_t *ret) {
        const char *text = nullptr;

        nd_try(nd_json_member_text(object, "state", TEXT_CEILING, &text));
        for (size_t i = 0; text && i < count; i++)
                if (nd_streq(text, names[i])) {
                        *ret = i;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown state '%s'", text ?: "");
}

/* ---- records ---- */

static struct nd_error *open_record(const char *bytes, size_t length, yyjson_doc **ret_doc, yyjson_val **ret) {
        uint64_t version = 0;

        nd_try(nd_json_parse(bytes, length, RECORD_CEILING, ret_doc));
        *ret = yyjson_doc_get_root(*ret_doc);
        if (!yyjson_is_obj(*ret))
                return nd_error_new(ND_INVALID, 0, "the record is not a JSON object");
        nd_try(nd_json_member_number(*ret, "version", UINT32_MAX, &version));
        if (version == 0)
                return nd_error_new(ND_INVALID, 0, "the record has no version");
        if (version > RECORD_VERSION)
                return nd_error_new(ND_UNIMPLEMENTED, 0,
                                    "written by a newer nodens-cri (format %u; this version reads up to %d)",
                                    (unsigned) version, RECORD_VERSION);
        return nullptr;
}

static struct nd_error *check_size(const struct nd_text *text) {
        return text->overflow ? nd_error_new(ND_EXHAUSTED, 0, "the record is larger than %d bytes", RECORD_CEILING) : nullptr;
}

struct nd_error *cri_record_format_sandbox(const struct cri_sandbox *sandbox, const char *boot_id, struct nd_text *ret) {
        nd_autotext struct nd_text text = ND_TEXT(RECORD_CEILING);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "version", RECORD_VERSION);
        nd_json_string(&out, "boot", boot_id);
        nd_json_string(&out, "state", cri_sandbox_state_name(sandbox->state));
        write_fields(&out, sandbox_fields, nd_count_of(sandbox_fields), sandbox);
        nd_json_open(&out, "addresses", '[');
        nd_vector_each (address, &sandbox->addresses) {
                nd_json_string(&out, nullptr, *address);
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        nd_try(check_size(&text));
        *ret = nd_take(text, (struct nd_text) {});
        return nullptr;
}

struct nd_error *cri_record_parse_sandbox(const char *bytes, size_t length, const char *boot_id, struct cri_sandbox *sandbox) {
        nd_autojson yyjson_doc *doc = nullptr;
        const char *boot = nullptr;
        yyjson_val *root = nullptr;
        size_t state = 0;

        nd_try(open_record(bytes, length, &doc, &root));
        nd_try(nd_json_member_text(root, "boot", BOOT_CEILING, &boot));
        nd_try(read_state(root, sandbox_states, nd_count_of(sandbox_states), &state));
        nd_try(read_fields(root, sandbox_fields, nd_count_of(sandbox_fields), sandbox));
        nd_try(nd_json_member_strings(root, "addresses", ADDRESSES, TEXT_CEILING, &sandbox->addresses));
        sandbox->state = (enum cri_sandbox_state) state;
        sandbox->this_boot = boot && nd_streq(boot, boot_id);
        return nullptr;
}

static void write_resources(struct nd_json_out *out, const struct cri_resource_request *resources) {
        nd_json_open(out, "resources", '{');
        write_fields(out, resource_fields, nd_count_of(resource_fields), resources);
        nd_json_open(out, "hugepages", '{');
        nd_vector_each (limit, &resources->hugepages) {
                nd_json_number(out, limit->page_size, limit->limit);
        }
        nd_json_close(out, '}');
        nd_json_open(out, "unified", '{');
        nd_vector_each (pair, &resources->unified) {
                nd_json_string(out, pair->key, pair->value);
        }
        nd_json_close(out, '}');
        nd_json_close(out, '}');
}

static void write_digest(struct nd_json_out *out, const char *key, const struct nd_digest *digest) {
        char text[ND_DIGEST_TEXT];

        if (nd_digest_is_set(digest))
                nd_json_string(out, key, nd_digest_text(digest, text));
}

static void write_mappings(struct nd_json_out *out, const struct cri_container *container) {
        nd_json_open(out, "mappings", '[');
        nd_vector_each (mapping, &container->mappings) {
                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "how", cri_mapping_name(mapping->how));
                if (*mapping->filesystem)
                        nd_json_string(out, "filesystem", mapping->filesystem);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

struct nd_error *cri_record_format_container(const struct cri_container *container, struct nd_text *ret) {
        nd_autotext struct nd_text text = ND_TEXT(RECORD_CEILING);
        struct nd_json_out out = {.text = &text};

        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "version", RECORD_VERSION);
        nd_json_string(&out, "state", cri_container_state_name(container->state));
        write_fields(&out, container_fields, nd_count_of(container_fields), container);
        write_digest(&out, "image", &container->image);
        write_digest(&out, "top", &container->top);
        nd_json_open(&out, "mounted", '[');
        nd_vector_each (layer, &container->mounted) {
                char digest[ND_DIGEST_TEXT];

                nd_json_string(&out, nullptr, nd_digest_text(layer, digest));
        }
        nd_json_close(&out, ']');
        nd_json_open(&out, "groups", '[');
        nd_vector_each (group, &container->user.groups) {
                nd_json_number(&out, nullptr, *group);
        }
        nd_json_close(&out, ']');
        write_mappings(&out, container);
        write_resources(&out, &container->request.resources);
        nd_json_close(&out, '}');
        nd_try(check_size(&text));
        *ret = nd_take(text, (struct nd_text) {});
        return nullptr;
}

static struct nd_error *read_hugepages(yyjson_val *object, struct cri_resource_request *resources) {
        yyjson_obj_iter members = yyjson_obj_iter_with(object);
        yyjson_val *key;

        for (size_t i = 0; i < PAIRS && (key = yyjson_obj_iter_next(&members)); i++) {
                yyjson_val *value = yyjson_obj_iter_get_val(key);

                if (!yyjson_is_uint(value))
                        return nd_error_new(ND_INVALID, 0, "invalid limit of huge pages: not a number");
                nd_vector_push(&resources->hugepages,
                               ((struct cri_hugepage_limit) {.page_size = nd_strdup(yyjson_get_str(key)),
                                                             .limit = yyjson_get_uint(value)}));
        }
        return nullptr;
}

static struct nd_error *read_unified(yyjson_val *object, struct cri_resource_request *resources) {
        yyjson_obj_iter members = yyjson_obj_iter_with(object);
        yyjson_val *key;

        for (size_t i = 0; i < PAIRS && (key = yyjson_obj_iter_next(&members)); i++) {
                const char *value = nullptr;

                nd_try(nd_json_value_text(yyjson_obj_iter_get_val(key), "unified", TEXT_CEILING, &value));
                nd_vector_push(&resources->unified,
                               ((struct cri_pair) {.key = nd_strdup(yyjson_get_str(key)), .value = nd_strdup(value ?: "")}));
        }
        return nullptr;
}

/* Limits that were changed after the container was created are in the record; the request has
 *        the original ones. */
static struct nd_error *read_resources(yyjson_val *root, struct cri_resource_request *resources) {
        yyjson_val *object = nullptr, *hugepages = nullptr, *unified = nullptr;

        nd_try(nd_json_member_object(root, "resources", &object));
        if (!object)
                return nullptr;
        cri_resource_request_done(resources);
        nd_try(read_fields(object, resource_fields, nd_count_of(resource_fields), resources));
        nd_try(nd_json_member_object(object, "hugepages", &hugepages));
        nd_try(nd_json_member_object(object, "unified", &unified));
        if (hugepages)
                nd_try(read_hugepages(hugepages, resources));
        return unified ? read_unified(unified, resources) : nullptr;
}

static struct nd_error *read_digest(yyjson_val *root, const char *key, struct nd_digest *ret) {
        const char *text = nullptr;

        nd_try(nd_json_member_text(root, key, ND_DIGEST_TEXT, &text));
        return text ? nd_digest_parse(text, ret) : nullptr;
}

static struct nd_error *read_groups(yyjson_val *root, struct cri_container_user *user) {
        yyjson_val *array = nullptr, *group;
        yyjson_arr_iter groups;

        nd_try(nd_json_member_array(root, "groups", GROUPS, &array));
        if (!array)
                return nullptr;
        groups = yyjson_arr_iter_with(array);
        while ((group = yyjson_arr_iter_next(&groups))) {
                if (!yyjson_is_uint(group) || yyjson_get_uint(group) > UINT32_MAX)
                        return nd_error_new(ND_INVALID, 0, "invalid supplementary group: not a number below 2^32");
                nd_vector_push(&user->groups, (uint32_t) yyjson_get_uint(group));
        }
        return nullptr;
}

static struct nd_error *read_mounted(yyjson_val *root, struct cri_container *container) {
        yyjson_val *array = nullptr, *layer;
        yyjson_arr_iter layers;

        nd_try(nd_json_member_array(root, "mounted", MOUNTED, &array));
        if (!array)
                return nullptr;
        layers = yyjson_arr_iter_with(array);
        while ((layer = yyjson_arr_iter_next(&layers))) {
                struct nd_digest digest;

                if (!yyjson_is_str(layer))
                        return nd_error_new(ND_INVALID, 0, "invalid digest of a mounted layer");
                nd_try(nd_digest_parse(yyjson_get_str(layer), &digest));
                nd_vector_push(&container->mounted, digest);
        }
        return nullptr;
}

/* A name that this version does not have is that of a newer one: unknown. */
static struct nd_error *read_mapping(yyjson_val *object, struct cri_mount_mapping *ret) {
        const char *how = nullptr, *filesystem = nullptr;

        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "invalid mapping of a mount: not an object");
        nd_try(nd_json_member_text(object, "how", TEXT_CEILING, &how));
        nd_try(nd_json_member_text(object, "filesystem", FILESYSTEM_NAME, &filesystem));
        for (enum cri_mapping i = 0; how && i < nd_count_of(mappings); i++)
                if (nd_streq(how, mappings[i]))
                        ret->how = i;
        (void) strlcpy(ret->filesystem, filesystem ?: "", sizeof ret->filesystem);
        return nullptr;
}

static struct nd_error *read_mappings(yyjson_val *root, struct cri_container *container) {
        yyjson_val *array = nullptr, *item;
        yyjson_arr_iter items;

        nd_try(nd_json_member_array(root, "mappings", MAPPINGS, &array));
        if (!array)
                return nullptr;
        items = yyjson_arr_iter_with(array);
        while ((item = yyjson_arr_iter_next(&items))) {
                struct cri_mount_mapping mapping = {};

                nd_try(read_mapping(item, &mapping));
                nd_vector_push(&container->mappings, mapping);
        }
        return nullptr;
}

struct nd_error *cri_record_parse_container(const char *bytes, size_t length, struct cri_container *container) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root = nullptr;
        size_t state = 0;

        nd_try(open_record(bytes, length, &doc, &root));
        nd_try(read_state(root, container_states, nd_count_of(container_states), &state));
        nd_try(read_fields(root, container_fields, nd_count_of(container_fields), container));
        nd_try(read_digest(root, "image", &container->image));
        nd_try(read_digest(root, "top", &container->top));
        nd_try(read_mounted(root, container));
        nd_try(read_mappings(root, container));
        nd_try(read_groups(root, &container->user));
        nd_try(read_resources(root, &container->request.resources));
        container->state = (enum cri_container_state)((int) state - 1);
        return nullptr;
}

bool cri_record_is_internal(const char *bytes, size_t length) {
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root = nullptr;
        nd_autoerror struct nd_error *error = open_record(bytes, length, &doc, &root);

        return !error && yyjson_get_bool(yyjson_obj_get(root, "internal"));
}
