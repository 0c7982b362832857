/* SPDX-License-Identifier: Apache-2.0 */
/* container-update.c - steps of an update; see container.c */
#include "cri/bundle/resources.h"
#include "cri/core/record.h"
#include "cri/pod/container-operation.h"

#define TAKE_NUMBER(field)                                                                                                    \
        do {                                                                                                                  \
                if (from->field != 0)                                                                                         \
                        to->field = from->field;                                                                              \
        } while (0)

static void take_text(char **to, char **from) {
        if (!*from || **from == '\0')
                return;
        free(*to);
        *to = nd_take_ptr(*from);
}

static void take_pair(struct cri_pairs *list, const struct cri_pair *pair) {
        nd_vector_each (known, list) {
                if (nd_streq(known->key, pair->key)) {
                        nd_strset(&known->value, pair->value);
                        return;
                }
        }
        nd_vector_push(list, ((struct cri_pair) {.key = nd_strdup(pair->key), .value = nd_strdup(pair->value)}));
}

/* Unset members keep their value. */
static void merge(struct cri_resource_request *to, struct cri_resource_request *from) {
        TAKE_NUMBER(cpu_period);
        TAKE_NUMBER(cpu_quota);
        TAKE_NUMBER(cpu_shares);
        TAKE_NUMBER(memory_limit);
        TAKE_NUMBER(memory_swap_limit);
        TAKE_NUMBER(oom_score_adj);
        take_text(&to->cpuset_cpus, &from->cpuset_cpus);
        take_text(&to->cpuset_mems, &from->cpuset_mems);
        nd_vector_each (pair, &from->unified) {
                take_pair(&to->unified, pair);
        }
}

static void on_updated(struct nd_error *error, void *userdata) {
        struct cri_container_operation *operation = userdata;

        operation->call = nullptr;
        cri_container_advance(operation, INPUT_DONE, error);
}

struct nd_error *cri_container_update_run(struct cri_container_operation *operation) {
        nd_cleanup(nd_spec_resources_done) struct nd_spec_resources resources = {};
        nd_autotext struct nd_text text = ND_TEXT(ND_SPEC_CEILING);
        const struct cri_container *container = operation->container;
        struct cri_parts *parts = operation->parts;

        if (!cri_container_lives(container))
                return nd_error_new(ND_PRECONDITION, 0, "container %.13s is not running", container->id);
        if (parts->config.without_cgroups)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "containers of this node have no cgroups, so limits cannot be changed");
        cri_resources_describe(&operation->resources, container->sandbox->request.cgroup_parent, &resources);
        nd_try(nd_spec_resources_format(&resources, &text));
        return cri_oci_runtime_update(parts->loop, &parts->config, container->sandbox->request.runtime_handler, container->id,
                                      nd_text_get(&text), on_updated, operation, &operation->call);
}

struct nd_error *cri_container_update_record(struct cri_container_operation *operation) {
        merge(&operation->container->request.resources, &operation->resources);
        return cri_record_save_container(operation->parts->records, operation->container, RECORD_NOSYNC);
}
