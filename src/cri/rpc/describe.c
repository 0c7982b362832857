/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/rpc/describe.h"

#include "base/json.h"
#include "cri/core/paths.h"
#include "cri/namespace/namespaces.h"

static void describe_map(struct nd_json_out *out, const char *key, const struct nd_userns_map *map) {
        nd_json_open(out, key, '{');
        nd_json_number(out, "containerID", map->inside);
        nd_json_number(out, "hostID", map->outside);
        nd_json_number(out, "size", map->count);
        nd_json_close(out, '}');
}

static void describe_namespaces(const struct cri_config *config, const struct cri_pins *pins,
                                const struct cri_sandbox *sandbox, struct nd_json_out *out) {
        nd_json_open(out, "namespaces", '{');
        for (enum cri_pod_namespace which = 0; which < POD_NAMESPACES; which++) {
                nd_autofree char *path =
                        sandbox->state == SANDBOX_READY ? cri_namespaces_path(config, pins, sandbox, which) : nullptr;

                nd_json_string(out, cri_namespaces_name(which),
                               !cri_namespaces_owned(&sandbox->request, which) ? "the node's" : path ?: "gone");
        }
        nd_json_close(out, '}');
}

static void describe_steps(struct nd_json_out *out, unsigned made) {
        static const struct {
                unsigned bit;
                const char *name;
        } steps[] = {{SANDBOX_MADE_NAMESPACES, "namespaces"},
                     {SANDBOX_MADE_FILES, "files"},
                     {SANDBOX_MADE_NETWORK, "network"},
                     {SANDBOX_MADE_INIT, "init"}};

        nd_json_open(out, "made", '[');
        for (size_t i = 0; i < nd_count_of(steps); i++)
                if (made & steps[i].bit)
                        nd_json_string(out, nullptr, steps[i].name);
        nd_json_close(out, ']');
}

void cri_describe_sandbox(const struct cri_config *config, const struct cri_pins *pins, const struct cri_sandbox *sandbox,
                          struct nd_text *ret) {
        nd_autofree char *directory = cri_path_of_sandbox(config, sandbox->id);
        struct nd_json_out out = {.text = ret};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "directory", directory);
        nd_json_string(&out, "cgroupParent", sandbox->request.cgroup_parent);
        nd_json_bool(&out, "thisBoot", sandbox->this_boot);
        nd_json_bool(&out, "userNamespace", sandbox->request.user_namespace);
        if (sandbox->request.user_namespace) {
                describe_map(&out, "uids", &sandbox->request.uids);
                describe_map(&out, "gids", &sandbox->request.gids);
        }
        describe_namespaces(config, pins, sandbox, &out);
        describe_steps(&out, sandbox->made);
        nd_json_string(&out, "network", sandbox->network_result);
        if (sandbox->network_check)
                nd_json_string(&out, "networkCheck", sandbox->network_check[0] ? sandbox->network_check : "passed");
        nd_json_open(&out, "containers", '[');
        nd_vector_each (container, &sandbox->containers) {
                nd_json_string(&out, nullptr, (*container)->id);
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
}

void cri_describe_container(const struct cri_config *config, const struct cri_container *container, struct nd_text *ret) {
        nd_autofree char *directory = cri_path_of_container(config, container);
        struct nd_json_out out = {.text = ret};
        char digest[ND_DIGEST_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "sandboxID", container->sandbox->id);
        nd_json_signed(&out, "pid", container->pid);
        nd_json_string(&out, "bundle", directory);
        nd_json_string(&out, "cgroup", container->cgroup);
        nd_json_string(&out, "topLayer", nd_digest_text(&container->top, digest));
        nd_json_bool(&out, "privileged", container->request.privileged);
        nd_json_bool(&out, "monitored", container->monitor);
        if (container->checks_json && container->checks_json[0])
                nd_json_raw(&out, "checks", container->checks_json);
        nd_json_close(&out, '}');
}
