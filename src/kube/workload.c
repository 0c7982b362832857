/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/workload.h"

#include <string.h>

#include "base/text.h"

enum {
        STEPS = 5,
};

static const struct {
        const char *kind;
        const char *groups[3];
        const char *prefix;
        const char *steps[STEPS]; /* path of the pod's template */
} kinds[] = {
        {"Pod", {""}, "", {}},
        {"PodTemplate", {""}, "template.", {"template"}},
        {"ReplicationController", {""}, "spec.template.", {"spec", "template"}},
        {"ReplicaSet", {"apps", "extensions"}, "spec.template.", {"spec", "template"}},
        {"Deployment", {"apps", "extensions"}, "spec.template.", {"spec", "template"}},
        {"StatefulSet", {"apps"}, "spec.template.", {"spec", "template"}},
        {"DaemonSet", {"apps", "extensions"}, "spec.template.", {"spec", "template"}},
        {"Job", {"batch"}, "spec.template.", {"spec", "template"}},
        {"CronJob", {"batch"}, "spec.jobTemplate.spec.template.", {"spec", "jobTemplate", "spec", "template"}},
};

struct head {
        const char *api_version;
        const char *kind;
        struct nd_kube_metadata metadata;
};

static const struct nd_shape_field head_fields[] = {
        {.name = "apiVersion", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct head, api_version)},
        {.name = "kind", .kind = ND_SHAPE_TEXT, .offset = offsetof(struct head, kind)},
        {.name = "metadata",
         .kind = ND_SHAPE_INLINE,
         .offset = offsetof(struct head, metadata),
         .of = &nd_kube_metadata_shape},
        {},
};
static const struct nd_shape head_shape = {.size = sizeof(struct head), .fields = head_fields};

static struct nd_error *decode_pod(yyjson_val *template, const char *prefix, struct nd_arena *arena, struct nd_pod *ret) {
        struct nd_error *error = nd_shape_decode(&nd_pod_shape, template, arena, ret);

        if (prefix[0] == '\0')
                return error;
        return nd_error_wrap(error, "in %.*s", (int) strlen(prefix) - 1, prefix);
}

/* Other groups have kinds of the same name with other fields: Volcano's Job. An object without an
 * apiVersion, which the API server would refuse, counts as Kubernetes' own. */
static bool has_group(const char *const *groups, const struct head *head, const char *group) {
        if (!head->api_version)
                return true;
        for (; *groups; groups++)
                if (nd_streq(*groups, group))
                        return true;
        return false;
}

static yyjson_val *walk(yyjson_val *object, const char *const *steps) {
        for (; *steps; steps++)
                object = yyjson_obj_get(object, *steps);
        return object;
}

yyjson_val *nd_workload_template(const char *kind, yyjson_val *object) {
        for (size_t i = 0; i < nd_count_of(kinds); i++)
                if (nd_streq(kinds[i].kind, kind))
                        return walk(object, kinds[i].steps);
        return nullptr;
}

struct nd_error *nd_workload_decode(yyjson_val *object, struct nd_arena *arena, struct nd_workload *ret) {
        struct nd_workload workload = {};
        struct head head = {};

        nd_try(nd_shape_decode(&head_shape, object, arena, &head));
        workload.written = nd_kube_or_empty(head.kind);
        workload.group = head.api_version && strchr(head.api_version, '/')
                                 ? nd_arena_copy(arena, head.api_version, strcspn(head.api_version, "/"))
                                 : "";
        for (size_t i = 0; i < nd_count_of(kinds); i++) {
                yyjson_val *template;

                if (!nd_streq(workload.written, kinds[i].kind))
                        continue;
                workload.same_name = !has_group(kinds[i].groups, &head, workload.group);
                if (workload.same_name)
                        continue;
                template = walk(object, kinds[i].steps);
                workload.kind = kinds[i].kind;
                workload.prefix = kinds[i].prefix;
                workload.has_pod = yyjson_is_obj(template);
                if (template)
                        nd_try(decode_pod(template, kinds[i].prefix, arena, &workload.pod));
        }
        workload.name = head.metadata.name ? head.metadata.name : nd_kube_or_empty(head.metadata.generate_name);
        workload.namespace = nd_kube_or_empty(head.metadata.namespace);
        *ret = workload;
        return nullptr;
}
