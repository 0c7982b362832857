/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/core/review.h"

#include <string.h>

#include "base/base64.h"

struct wire_resource {
        const char *group;
        const char *resource;
};

struct wire_user {
        const char *name;
        const char *uid;
        struct nd_shape_texts groups;
};

struct wire_request {
        const char *uid;
        const char *operation;
        const char *subresource;
        const char *name;
        const char *namespace;
        bool dry_run;
        struct wire_resource resource;
        struct wire_user user;
};

static const struct nd_shape_field resource_fields[] = {
        ND_FIELD(wire_resource, "group", group, TEXT),
        ND_FIELD(wire_resource, "resource", resource, TEXT),
        {},
};
static const struct nd_shape resource_shape = ND_SHAPE_OF(wire_resource, resource_fields);

static const struct nd_shape_field user_fields[] = {
        ND_FIELD(wire_user, "username", name, TEXT),
        ND_FIELD(wire_user, "uid", uid, TEXT),
        ND_FIELD(wire_user, "groups", groups, TEXTS),
        {},
};
static const struct nd_shape user_shape = ND_SHAPE_OF(wire_user, user_fields);

static const struct nd_shape_field request_fields[] = {
        ND_FIELD(wire_request, "uid", uid, TEXT),
        ND_FIELD(wire_request, "operation", operation, TEXT),
        ND_FIELD(wire_request, "subResource", subresource, TEXT),
        ND_FIELD(wire_request, "name", name, TEXT),
        ND_FIELD(wire_request, "namespace", namespace, TEXT),
        ND_FIELD(wire_request, "dryRun", dry_run, BOOL),
        ND_NESTED(wire_request, "resource", resource, INLINE, resource_shape),
        ND_NESTED(wire_request, "userInfo", user, INLINE, user_shape),
        {},
};
static const struct nd_shape request_shape = ND_SHAPE_OF(wire_request, request_fields);

static struct nd_error *read_operation(const char *text, enum guard_operation *ret) {
        static const char *const names[] = {
                [GUARD_CREATE] = "CREATE", [GUARD_UPDATE] = "UPDATE", [GUARD_CONNECT] = "CONNECT", [GUARD_DELETE] = "DELETE"};
        static_assert(nd_count_of(names) == GUARD_OPERATIONS);

        for (size_t i = 0; i < nd_count_of(names); i++)
                if (nd_streq(nd_kube_or_empty(text), names[i])) {
                        *ret = (enum guard_operation) i;
                        return nullptr;
                }
        return nd_error_new(ND_INVALID, 0, "unknown request.operation '%s'", nd_kube_or_empty(text));
}

static struct nd_error *read_pod(yyjson_val *object, const char *what, struct nd_arena *arena, struct nd_pod **ret) {
        struct nd_pod *pod;

        if (!yyjson_is_obj(object))
                return nullptr;
        if (!yyjson_equals_str(yyjson_obj_get(object, "kind"), "Pod"))
                return nullptr;
        pod = nd_arena_new(arena, struct nd_pod);
        nd_try(nd_error_wrap(nd_shape_decode(&nd_pod_shape, object, arena, pod), "request.%s", what));
        *ret = pod;
        return nullptr;
}

static struct nd_error *read_extra(yyjson_val *request, struct nd_arena *arena, struct guard_subject *user) {
        yyjson_val *extra = yyjson_obj_get(yyjson_obj_get(request, "userInfo"), "extra");
        nd_autofree char *text = nullptr;

        if (!extra || yyjson_is_null(extra))
                return nullptr;
        if (!yyjson_is_obj(extra))
                return nd_error_new(ND_INVALID, 0, "request.userInfo.extra is not an object");
        text = yyjson_val_write(extra, 0, nullptr);
        user->extra = text ? nd_arena_strdup(arena, text) : nullptr;
        return nullptr;
}

struct wire_labelled {
        struct nd_kube_metadata metadata;
};

static const struct nd_shape_field labelled_fields[] = {
        ND_NESTED(wire_labelled, "metadata", metadata, INLINE, nd_kube_metadata_shape),
        {},
};
static const struct nd_shape labelled_shape = ND_SHAPE_OF(wire_labelled, labelled_fields);

static struct nd_error *read_labels(yyjson_val *object, const char *what, struct nd_arena *arena, struct nd_shape_pairs *ret) {
        struct wire_labelled wire = {};

        if (!object || yyjson_is_null(object))
                return nullptr;
        nd_try(nd_error_wrap(nd_shape_decode(&labelled_shape, object, arena, &wire), "request.%s", what));
        *ret = wire.metadata.labels;
        return nullptr;
}

struct wire_node_info {
        const char *kubelet_version;
};

struct wire_node_status {
        struct wire_node_info info;
};

struct wire_node {
        struct wire_node_status status;
};

static const struct nd_shape_field node_info_fields[] = {ND_FIELD(wire_node_info, "kubeletVersion", kubelet_version, TEXT),
                                                         {}};
static const struct nd_shape node_info_shape = ND_SHAPE_OF(wire_node_info, node_info_fields);
static const struct nd_shape_field node_status_fields[] = {
        ND_NESTED(wire_node_status, "nodeInfo", info, INLINE, node_info_shape), {}};
static const struct nd_shape node_status_shape = ND_SHAPE_OF(wire_node_status, node_status_fields);
static const struct nd_shape_field node_fields[] = {ND_NESTED(wire_node, "status", status, INLINE, node_status_shape), {}};
static const struct nd_shape node_shape = ND_SHAPE_OF(wire_node, node_fields);

static struct nd_error *read_node(yyjson_val *object, struct nd_arena *arena, struct guard_review *review) {
        struct wire_node wire = {};

        if (!yyjson_is_obj(object))
                return nullptr;
        nd_try(nd_error_wrap(nd_shape_decode(&node_shape, object, arena, &wire), "request.object"));
        review->kubelet_version = nd_kube_or_empty(wire.status.info.kubelet_version);
        return nullptr;
}

/* Workload controllers only get warnings, so a template that cannot be read is not refused. */
static void read_template(yyjson_val *object, struct nd_arena *arena, struct guard_review *review) {
        struct nd_workload *workload = nd_arena_new(arena, struct nd_workload);
        nd_autoerror struct nd_error *error = nd_workload_decode(object, arena, workload);

        if (error)
                review->template_error = nd_arena_strdup(arena, nd_error_text(error));
        else if (workload->kind && workload->has_pod)
                review->workload = workload;
}

/* A former object that cannot be read does not prevent its replacement. */
static struct nd_error *read_floors(yyjson_val *object, yyjson_val *old, struct nd_arena *arena, struct guard_review *review) {
        struct nd_floor *floor = nd_arena_new(arena, struct nd_floor), *former = nd_arena_new(arena, struct nd_floor);
        nd_autoerror struct nd_error *error = nullptr;

        if (yyjson_is_obj(object)) {
                nd_try(nd_error_wrap(nd_floor_decode(object, arena, floor), "request.object"));
                review->floor = floor;
        }
        if (yyjson_is_obj(old))
                error = nd_floor_decode(old, arena, former);
        review->old_floor = yyjson_is_obj(old) && !error ? former : nullptr;
        return nullptr;
}

static struct nd_error *read_objects(yyjson_val *request, struct nd_arena *arena, struct guard_review *review) {
        yyjson_val *object = yyjson_obj_get(request, "object"), *old = yyjson_obj_get(request, "oldObject");

        if (nd_streq(review->resource, "namespaces") && *review->group == '\0') {
                nd_try(read_labels(object, "object", arena, &review->labels));
                return read_labels(old, "oldObject", arena, &review->old_labels);
        }
        if (nd_streq(review->resource, "nodeversionfloors"))
                return read_floors(object, old, arena, review);
        if (nd_streq(review->resource, "nodes") && *review->group == '\0')
                return read_node(object, arena, review);
        if (!nd_streq(review->resource, "pods") && yyjson_is_obj(object))
                read_template(object, arena, review);
        nd_try(read_pod(object, "object", arena, &review->pod));
        nd_try(read_pod(old, "oldObject", arena, &review->old));
        review->same_spec =
                review->pod && review->old && yyjson_equals(yyjson_obj_get(object, "spec"), yyjson_obj_get(old, "spec"));
        return nullptr;
}

struct nd_error *guard_review_decode(const char *bytes, size_t length, struct nd_arena *arena, struct guard_review *ret) {
        struct wire_request wire = {};
        yyjson_val *root, *request;
        nd_autojson yyjson_doc *doc = nullptr;

        nd_try(nd_json_parse(bytes, length, GUARD_REVIEW_BYTES, &doc));
        root = yyjson_doc_get_root(doc);
        request = yyjson_obj_get(root, "request");
        if (!yyjson_equals_str(yyjson_obj_get(root, "apiVersion"), "admission.k8s.io/v1") ||
            !yyjson_equals_str(yyjson_obj_get(root, "kind"), "AdmissionReview") || !yyjson_is_obj(request))
                return nd_error_new(ND_INVALID, 0, "not an AdmissionReview of admission.k8s.io/v1 with a request");
        nd_try(nd_error_wrap(nd_shape_decode(&request_shape, request, arena, &wire), "request"));
        if (nd_kube_or_empty(wire.uid)[0] == '\0')
                return nd_error_new(ND_INVALID, 0, "request.uid is missing");
        *ret = (struct guard_review) {.uid = wire.uid,
                                      .group = nd_kube_or_empty(wire.resource.group),
                                      .resource = nd_kube_or_empty(wire.resource.resource),
                                      .subresource = nd_kube_or_empty(wire.subresource),
                                      .name = nd_kube_or_empty(wire.name),
                                      .namespace = nd_kube_or_empty(wire.namespace),
                                      .dry_run = wire.dry_run,
                                      .user = {.name = nd_kube_or_empty(wire.user.name),
                                               .uid = nd_kube_or_empty(wire.user.uid),
                                               .groups = wire.user.groups}};
        nd_try(read_operation(wire.operation, &ret->operation));
        nd_try(read_extra(request, arena, &ret->user));
        return read_objects(request, arena, ret);
}

/* ---- responses ---- */

void guard_response_warn(struct guard_response *response, const char *text) {
        if (response->warning_count < GUARD_WARNINGS)
                response->warnings[response->warning_count++] = text;
}

void guard_response_audit(struct guard_response *response, const char *key, const char *value) {
        if (response->audit_count < nd_count_of(response->audit))
                response->audit[response->audit_count++] = (struct nd_shape_pair) {.key = key, .value = value};
}

void guard_response_deny(struct guard_response *response, unsigned code, const char *reason, const char *message) {
        response->allowed = false;
        response->code = code;
        response->reason = reason;
        response->message = message;
        response->patch = nullptr;
}

static void write_status(const struct guard_response *response, struct nd_json_out *out) {
        nd_json_open(out, "status", '{');
        nd_json_number(out, "code", response->code);
        nd_json_string(out, "reason", response->reason);
        nd_json_string(out, "message", response->message);
        if (response->retry_s > 0) {
                nd_json_open(out, "details", '{');
                nd_json_number(out, "retryAfterSeconds", response->retry_s);
                nd_json_close(out, '}');
        }
        nd_json_close(out, '}');
}

static void write_warnings(const struct guard_response *response, struct nd_json_out *out) {
        nd_json_open(out, "warnings", '[');
        for (size_t i = 0; i < response->warning_count; i++) {
                nd_autotext struct nd_text cut = ND_TEXT(GUARD_WARNING_BYTES);

                nd_text_add_utf8(&cut, response->warnings[i], strlen(response->warnings[i]));
                nd_json_string(out, nullptr, nd_text_get(&cut));
        }
        nd_json_close(out, ']');
}

static void write_patch(const struct guard_response *response, struct nd_json_out *out) {
        nd_autofree char *encoded = nd_base64(response->patch, strlen(response->patch));

        nd_json_string(out, "patchType", "JSONPatch");
        nd_json_string(out, "patch", encoded);
}

void guard_response_write(const struct guard_response *response, const char *uid, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "admission.k8s.io/v1");
        nd_json_string(&out, "kind", "AdmissionReview");
        nd_json_open(&out, "response", '{');
        nd_json_string(&out, "uid", uid);
        nd_json_bool(&out, "allowed", response->allowed);
        if (!response->allowed)
                write_status(response, &out);
        if (response->allowed && response->patch)
                write_patch(response, &out);
        if (response->warning_count > 0)
                write_warnings(response, &out);
        if (response->audit_count > 0) {
                nd_json_open(&out, "auditAnnotations", '{');
                for (size_t i = 0; i < response->audit_count; i++)
                        nd_json_string(&out, response->audit[i].key, response->audit[i].value);
                nd_json_close(&out, '}');
        }
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}
