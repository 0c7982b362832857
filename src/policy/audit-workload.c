/* SPDX-License-Identifier: Apache-2.0 */
/* audit-workload.c - pods and workload controllers as an audit sees them
 *
 * Items of a list have neither kind nor apiVersion, so the caller gives the kind. */
#include <string.h>

#include "kube/workload.h"
#include "policy/audit.h"

struct owner {
        const char *kind;
        const char *name;
        const char *api_version;
        bool controller;
};

struct metadata {
        const char *name;
        const char *namespace;
        const char *uid;
        nd_list(struct owner) owners;
};

struct linux_user {
        struct nd_shape_int uid;
        struct nd_shape_int gid;
        struct nd_shape_ints groups;
};

struct user {
        struct linux_user numbers;
};

struct container_status {
        struct user user;
};

struct condition {
        const char *type;
        const char *status;
};

struct status {
        const char *phase;
        nd_list(struct container_status) containers;
        nd_list(struct condition) conditions;
};

struct claim_template {
        struct metadata metadata;
};

struct spec {
        nd_list(struct claim_template) claim_templates;
};

struct head {
        struct metadata metadata;
        struct spec spec;
        struct status status;
};

static const struct nd_shape_field owner_fields[] = {
        ND_FIELD(owner, "kind", kind, TEXT),
        ND_FIELD(owner, "name", name, TEXT),
        ND_FIELD(owner, "apiVersion", api_version, TEXT),
        ND_FIELD(owner, "controller", controller, BOOL),
        {},
};
static const struct nd_shape owner_shape = ND_SHAPE_OF(owner, owner_fields);
static const struct nd_shape_field metadata_fields[] = {
        ND_FIELD(metadata, "name", name, TEXT),
        ND_FIELD(metadata, "namespace", namespace, TEXT),
        ND_FIELD(metadata, "uid", uid, TEXT),
        ND_NESTED(metadata, "ownerReferences", owners, LIST, owner_shape),
        {},
};
static const struct nd_shape metadata_shape = ND_SHAPE_OF(metadata, metadata_fields);
static const struct nd_shape_field linux_user_fields[] = {
        ND_FIELD(linux_user, "uid", uid, INT),
        ND_FIELD(linux_user, "gid", gid, INT),
        ND_FIELD(linux_user, "supplementalGroups", groups, INTS),
        {},
};
static const struct nd_shape linux_user_shape = ND_SHAPE_OF(linux_user, linux_user_fields);
static const struct nd_shape_field user_fields[] = {ND_NESTED(user, "linux", numbers, INLINE, linux_user_shape), {}};
static const struct nd_shape user_shape = ND_SHAPE_OF(user, user_fields);
static const struct nd_shape_field container_status_fields[] = {ND_NESTED(container_status, "user", user, INLINE, user_shape),
                                                                {}};
static const struct nd_shape container_status_shape = ND_SHAPE_OF(container_status, container_status_fields);
static const struct nd_shape_field condition_fields[] = {
        ND_FIELD(condition, "type", type, TEXT),
        ND_FIELD(condition, "status", status, TEXT),
        {},
};
static const struct nd_shape condition_shape = ND_SHAPE_OF(condition, condition_fields);
static const struct nd_shape_field status_fields[] = {
        ND_FIELD(status, "phase", phase, TEXT),
        ND_NESTED(status, "containerStatuses", containers, LIST, container_status_shape),
        ND_NESTED(status, "conditions", conditions, LIST, condition_shape),
        {},
};
static const struct nd_shape status_shape = ND_SHAPE_OF(status, status_fields);
static const struct nd_shape_field claim_template_fields[] = {
        ND_NESTED(claim_template, "metadata", metadata, INLINE, metadata_shape),
        {},
};
static const struct nd_shape claim_template_shape = ND_SHAPE_OF(claim_template, claim_template_fields);
static const struct nd_shape_field spec_fields[] = {
        ND_NESTED(spec, "volumeClaimTemplates", claim_templates, LIST, claim_template_shape),
        {},
};
static const struct nd_shape spec_shape = ND_SHAPE_OF(spec, spec_fields);
static const struct nd_shape_field head_fields[] = {
        ND_NESTED(head, "metadata", metadata, INLINE, metadata_shape),
        ND_NESTED(head, "spec", spec, INLINE, spec_shape),
        ND_NESTED(head, "status", status, INLINE, status_shape),
        {},
};
static const struct nd_shape head_shape = ND_SHAPE_OF(head, head_fields);

/* ---- devices ---- */

/* Extended resources have a domain; quantities are not read. */
static const char *device_of_limits(yyjson_val *limits, struct nd_arena *arena) {
        yyjson_obj_iter members = yyjson_obj_iter_with(limits);
        yyjson_val *key;

        while ((key = yyjson_obj_iter_next(&members))) {
                const char *name = yyjson_get_str(key);

                if (name && strchr(name, '/'))
                        return nd_arena_strdup(arena, name);
        }
        return "";
}

static const char *device_of_list(yyjson_val *containers, struct nd_arena *arena) {
        yyjson_arr_iter items = yyjson_arr_iter_with(containers);
        yyjson_val *item;

        while ((item = yyjson_arr_iter_next(&items))) {
                yyjson_val *resources = yyjson_obj_get(item, "resources");
                const char *device = device_of_limits(yyjson_obj_get(resources, "limits"), arena);

                if (!*device)
                        device = device_of_limits(yyjson_obj_get(resources, "requests"), arena);
                if (*device)
                        return device;
        }
        return "";
}

static const char *device_of(yyjson_val *spec, struct nd_arena *arena) {
        const char *device = device_of_list(yyjson_obj_get(spec, "containers"), arena);

        if (!*device)
                device = device_of_list(yyjson_obj_get(spec, "initContainers"), arena);
        if (!*device)
                device = device_of_limits(yyjson_obj_get(yyjson_obj_get(spec, "resources"), "limits"), arena);
        return !*device && yyjson_arr_size(yyjson_obj_get(spec, "resourceClaims")) > 0 ? "a resource claim" : device;
}

/* ---- the rest ---- */

static void raise(int64_t *highest, struct nd_shape_int number) {
        if (number.set && number.value > *highest)
                *highest = number.value;
}

static int64_t highest_id(const struct status *status) {
        int64_t highest = 0;

        nd_list_each(one, &status->containers) {
                const struct linux_user *user = &one->user.numbers;

                raise(&highest, user->uid);
                raise(&highest, user->gid);
                for (size_t i = 0; i < user->groups.count; i++)
                        raise(&highest, ND_INT(user->groups.items[i]));
        }
        return highest;
}

static bool has_condition(const struct status *status, const char *type) {
        nd_list_each(one, &status->conditions) if (nd_streq(nd_kube_or_empty(one->type), type) &&
                                                   nd_streq(nd_kube_or_empty(one->status), "True")) return true;
        return false;
}

static bool has_ended(enum nd_audit_kind kind, const struct status *status) {
        const char *phase = nd_kube_or_empty(status->phase);

        if (kind == ND_AUDIT_POD)
                return nd_streq(phase, "Succeeded") || nd_streq(phase, "Failed");
        return kind == ND_AUDIT_JOB && (has_condition(status, "Complete") || has_condition(status, "Failed"));
}

static struct nd_shape_texts claim_names(const struct spec *spec, struct nd_arena *arena) {
        struct nd_shape_texts names = {.items = nd_arena_alloc(arena, spec->claim_templates.count, sizeof *names.items)};

        nd_list_each(one, &spec->claim_templates) names.items[names.count++] = nd_kube_or_empty(one->metadata.name);
        return names;
}

static void set_owner(const struct metadata *metadata, struct nd_audit_workload *workload) {
        workload->owner = workload->owner_kind = "";
        nd_list_each(owner, &metadata->owners) {
                enum nd_audit_kind kind =
                        nd_audit_kind_of(nd_kube_or_empty(owner->api_version), nd_kube_or_empty(owner->kind));

                /* a static pod belongs to its node, which is not a workload */
                if (!owner->controller || nd_streq(nd_kube_or_empty(owner->kind), "Node"))
                        continue;
                workload->owner_kind = nd_kube_or_empty(owner->kind);
                workload->owner = nd_kube_or_empty(owner->name);
                workload->known_owner = kind >= ND_AUDIT_DEPLOYMENT && kind < ND_AUDIT_KINDS;
        }
}

struct nd_error *nd_audit_workload_decode(enum nd_audit_kind kind, yyjson_val *object, struct nd_arena *arena,
                                          struct nd_audit_workload *ret) {
        struct nd_audit_workload workload = {.kind = kind};
        yyjson_val *template;
        struct head head = {};

        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "not an object");
        nd_try(nd_shape_decode(&head_shape, object, arena, &head));
        workload.name = nd_kube_or_empty(head.metadata.name);
        workload.namespace = nd_kube_or_empty(head.metadata.namespace);
        workload.uid = nd_kube_or_empty(head.metadata.uid);
        template = nd_workload_template(nd_audit_resources[kind].kind, object);
        if (template)
                nd_try(nd_shape_decode(&nd_pod_shape, template, arena, &workload.pod));
        workload.device = device_of(yyjson_obj_get(template, "spec"), arena);
        workload.finished = has_ended(kind, &head.status);
        workload.mirror = nd_kube_or_empty(
                kind == ND_AUDIT_POD ? nd_shape_pairs_get(&workload.pod.metadata.annotations, "kubernetes.io/config.mirror")
                                     : nullptr);
        workload.claim_templates = claim_names(&head.spec, arena);
        workload.running_id = highest_id(&head.status);
        set_owner(&head.metadata, &workload);
        *ret = workload;
        return nullptr;
}
