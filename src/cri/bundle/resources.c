/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/resources.h"

#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/cgroup.h"
#include "sys/file.h"

#define CGROUPS "/sys/fs/cgroup"

static char *copy_if(const char *text) {
        return text && *text ? nd_strdup(text) : nullptr;
}

static bool node_has(const char *controller) {
        nd_autofree char *list = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(CGROUPS "/cgroup.controllers", 4096, &list);

        if (error)
                return false;
        list[strcspn(list, "\n")] = '\0';
        return nd_cgroup_has(list, controller);
}

static bool counts_swap(const char *parent) {
        nd_autofree char *path = nd_format(CGROUPS "%s%s/memory.swap.max", *parent == '/' ? "" : "/", parent);

        return access(path, F_OK) == 0;
}

void cri_resources_describe(const struct cri_resource_request *request, const char *parent, struct nd_spec_resources *ret) {
        ret->cpu_shares = request->cpu_shares;
        ret->cpu_quota = request->cpu_quota;
        ret->cpu_period = request->cpu_period;
        ret->cpus = copy_if(request->cpuset_cpus);
        ret->memories = copy_if(request->cpuset_mems);
        ret->memory_limit = request->memory_limit;
        ret->memory_swap = request->memory_swap_limit;
        if (ret->memory_swap == 0 && ret->memory_limit != 0 && counts_swap(parent))
                ret->memory_swap = ret->memory_limit;
        if (request->hugepages.count > 0 && node_has("hugetlb"))
                nd_vector_each (page, &request->hugepages) {
                        nd_vector_push(&ret->pages, ((struct nd_spec_page_limit) {.size = nd_strdup(page->page_size),
                                                                                  .limit = page->limit}));
                }
        nd_vector_each (pair, &request->unified) {
                nd_vector_push(&ret->unified,
                               ((struct nd_spec_setting) {.key = nd_strdup(pair->key), .value = nd_strdup(pair->value)}));
        }
}

static struct nd_error *slice_of(const char *parent, const char **ret) {
        const char *slash = strrchr(parent, '/'), *dot = strrchr(parent, '.');

        if (!*parent) {
                *ret = "system.slice";
                return nullptr;
        }
        if (!dot || !nd_streq(dot, ".slice"))
                return nd_error_new(
                        ND_INVALID, 0,
                        "cgroup parent '%s' is not a slice, but the cgroup driver is systemd: kubelet and nodens-cri "
                        "must use the same one: set cgroupDriver in " CRI_CONFIG_PATH
                        ", or cgroupDriver of the kubelet's configuration, and restart it",
                        parent);
        *ret = slash ? slash + 1 : parent;
        return nullptr;
}

struct nd_error *cri_resources_cgroup(const struct cri_config *config, const char *parent, const char *id, char **ret) {
        const char *slice = nullptr;

        if (strstr(parent, "..") || strchr(parent, ':'))
                return nd_error_new(ND_INVALID, 0, "invalid cgroup parent '%s': it contains '..' or ':'", parent);
        if (!config->systemd_cgroups) {
                *ret = nd_format("%s/%s", *parent ? parent : "/nodens", id);
                return nullptr;
        }
        nd_try(slice_of(parent, &slice));
        *ret = nd_format("%s:%s:%s", slice, config->cgroup_prefix, id);
        return nullptr;
}

struct nd_error *cri_resources_cgroup_path(const char *given, char **ret) {
        const char *prefix = strchr(given, ':'), *id = prefix ? strchr(prefix + 1, ':') : nullptr;
        nd_autofree char *slice = nullptr, *path = nullptr;

        if (!prefix) {
                *ret = nd_strdup(given);
                return nullptr;
        }
        slice = nd_format("%.*s", (int) (prefix - given), given);
        path = id ? nd_cgroup_slice(slice) : nullptr;
        if (!path)
                return nd_error_new(ND_INVALID, 0, "invalid cgroup '%s'", given);
        *ret = nd_format("%s/%.*s-%s.scope", path, (int) (id - prefix - 1), prefix + 1, id + 1);
        return nullptr;
}

/* Monitoring agents that look only at the end of the path find the container's ID there. */
char *cri_resources_leaf(const char *id) {
        return nd_format("init:cri-containerd:%s", id);
}

void cri_resources_bound_cgroups(struct nd_spec_resources *resources) {
        static const struct {
                const char *key;
                const char *value;
        } bounds[] = {{"cgroup.max.descendants", "1024"}, {"cgroup.max.depth", "16"}};

        for (size_t i = 0; i < nd_count_of(bounds); i++)
                nd_vector_push(&resources->unified, ((struct nd_spec_setting) {.key = nd_strdup(bounds[i].key),
                                                                               .value = nd_strdup(bounds[i].value)}));
}

int cri_resources_oom_score(int64_t wanted, uint64_t capabilities) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        int score = wanted < -1000 ? -1000 : wanted > 1000 ? 1000 : (int) wanted;
        long own;

        if (capabilities & UINT64_C(1) << CAP_SYS_RESOURCE)
                return score;
        error = nd_file_read_kernel("/proc/self/oom_score_adj", 16, &text);
        own = error ? 0 : strtol(text, nullptr, 10);
        return score < own ? (int) own : score;
}
