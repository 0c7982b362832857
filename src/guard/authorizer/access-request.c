/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/authorizer/access-request.h"

struct wire_resource {
        const char *namespace;
        const char *verb;
        const char *group;
        const char *resource;
        const char *subresource;
        const char *name;
};

struct wire_spec {
        const char *user;
        const char *uid;
        struct nd_shape_texts groups;
        struct wire_resource *resource;
};

static const struct nd_shape_field resource_fields[] = {
        ND_FIELD(wire_resource, "namespace", namespace, TEXT),
        ND_FIELD(wire_resource, "verb", verb, TEXT),
        ND_FIELD(wire_resource, "group", group, TEXT),
        ND_FIELD(wire_resource, "resource", resource, TEXT),
        ND_FIELD(wire_resource, "subresource", subresource, TEXT),
        ND_FIELD(wire_resource, "name", name, TEXT),
        {},
};
static const struct nd_shape resource_shape = ND_SHAPE_OF(wire_resource, resource_fields);
static const struct nd_shape_field spec_fields[] = {
        ND_FIELD(wire_spec, "user", user, TEXT),
        ND_FIELD(wire_spec, "uid", uid, TEXT),
        ND_FIELD(wire_spec, "groups", groups, TEXTS),
        ND_NESTED(wire_spec, "resourceAttributes", resource, OBJECT, resource_shape),
        {},
};
static const struct nd_shape spec_shape = ND_SHAPE_OF(wire_spec, spec_fields);

struct nd_error *guard_access_request_decode(const char *bytes, size_t length, struct nd_arena *arena,
                                             struct guard_access_request *ret) {
        static const struct wire_resource none = {};
        const struct wire_resource *resource;
        nd_autojson yyjson_doc *doc = nullptr;
        struct wire_spec wire = {};
        yyjson_val *root;

        nd_try(nd_json_parse(bytes, length, GUARD_ACCESS_REQUEST_BYTES, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_equals_str(yyjson_obj_get(root, "apiVersion"), "authorization.k8s.io/v1") ||
            !yyjson_equals_str(yyjson_obj_get(root, "kind"), "SubjectAccessReview"))
                return nd_error_new(ND_INVALID, 0, "not a SubjectAccessReview of authorization.k8s.io/v1");
        nd_try(nd_error_wrap(nd_shape_decode(&spec_shape, yyjson_obj_get(root, "spec"), arena, &wire), "spec"));
        resource = wire.resource ? wire.resource : &none;
        *ret = (struct guard_access_request) {
                .user = {.name = nd_kube_or_empty(wire.user), .uid = nd_kube_or_empty(wire.uid), .groups = wire.groups},
                .has_resource = wire.resource,
                .verb = nd_kube_or_empty(resource->verb),
                .group = nd_kube_or_empty(resource->group),
                .resource = nd_kube_or_empty(resource->resource),
                .subresource = nd_kube_or_empty(resource->subresource),
                .name = nd_kube_or_empty(resource->name),
                .namespace = nd_kube_or_empty(resource->namespace)};
        return nullptr;
}

void guard_access_request_answer(const char *denial, struct nd_text *text) {
        struct nd_json_out out = {.text = text};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "apiVersion", "authorization.k8s.io/v1");
        nd_json_string(&out, "kind", "SubjectAccessReview");
        nd_json_open(&out, "status", '{');
        nd_json_bool(&out, "allowed", false);
        if (denial) {
                nd_json_bool(&out, "denied", true);
                nd_json_string(&out, "reason", denial);
        }
        nd_json_close(&out, '}');
        nd_json_close(&out, '}');
}
