/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/kubelet-config.h"

#include <string.h>

#include "base/yaml.h"
#include "sys/file.h"
#include "userns/range.h"

enum { CONFIG_CEILING = 1 << 20 };

static struct nd_error *take_number(yyjson_val *object, const char *key, int64_t *target) {
        yyjson_val *value = yyjson_obj_get(object, key);

        if (!value || yyjson_is_null(value))
                return nullptr;
        if (!yyjson_is_int(value))
                return nd_error_new(ND_INVALID, 0, "%s is not an integer", key);
        *target = yyjson_get_sint(value);
        return nullptr;
}

static struct nd_error *take_text(yyjson_val *object, const char *key, char *target, size_t size) {
        yyjson_val *value = yyjson_obj_get(object, key);

        if (!value || yyjson_is_null(value))
                return nullptr;
        if (!yyjson_is_str(value) || yyjson_get_len(value) >= size)
                return nd_error_new(ND_INVALID, 0, "%s is not a text of at most %zu characters", key, size - 1);
        memcpy(target, unsafe_yyjson_get_str(value), yyjson_get_len(value) + 1);
        return nullptr;
}

void cli_kubelet_config_init(struct cli_kubelet_config *ret) {
        *ret = (struct cli_kubelet_config) {.ids_per_pod = ND_IDS_UNIT, .max_pods = ND_PODS_DEFAULT};
}

struct nd_error *cli_kubelet_config_parse(const char *text, size_t length, struct cli_kubelet_config *config) {
        int64_t ids_per_pod = config->ids_per_pod, max_pods = config->max_pods;
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root, *gate;

        nd_try(nd_yaml_parse(text, length, CONFIG_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "not a KubeletConfiguration");
        nd_try(take_number(root, "maxPods", &max_pods));
        nd_try(take_number(yyjson_obj_get(root, "userNamespaces"), "idsPerPod", &ids_per_pod));
        nd_try(nd_userns_ids_per_pod_check(ids_per_pod));
        if (max_pods < 0 || max_pods > INT32_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid maxPods %lld: must be 0 to %d", (long long) max_pods, INT32_MAX);
        nd_try(take_text(root, "containerRuntimeEndpoint", config->endpoint, sizeof config->endpoint));
        nd_try(take_text(root, "cgroupDriver", config->cgroup_driver, sizeof config->cgroup_driver));
        gate = yyjson_obj_get(yyjson_obj_get(root, "featureGates"), "KubeletCgroupDriverFromCRI");
        if (gate)
                config->ignores_runtime = yyjson_is_false(gate);
        config->ids_per_pod = (uint32_t) ids_per_pod;
        config->max_pods = (uint32_t) max_pods;
        config->found = true;
        return nullptr;
}

struct nd_error *cli_kubelet_config_read(const char *path, struct cli_kubelet_config *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *text = nullptr;

        cli_kubelet_config_init(ret);
        /* Follows links, as the kubelet does. */
        error = nd_file_read_kernel(path ?: KUBELET_CONFIG, CONFIG_CEILING, &text);
        if (!path && nd_error_code(error) == ND_NOT_FOUND)
                return nullptr;
        if (error)
                return nd_take_ptr(error);
        return nd_error_wrap(cli_kubelet_config_parse(text, strlen(text), ret), "%s", path ?: KUBELET_CONFIG);
}
