/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/component.h"

#include "rootless/components/cni.h"
#include "rootless/components/record.h"

size_t rootless_components_of(const struct rootless_cluster *cluster,
                              const struct rootless_component *ret[static COMPONENTS_CEILING]) {
        size_t count = 0;

        ret[count++] =
                cluster->runtime == RUNTIME_CONTAINERD ? &rootless_component_containerd : &rootless_component_nodens_cri;
        ret[count++] = &rootless_component_kubelet;
        ret[count++] = &rootless_component_proxy;
        return count;
}

struct nd_error *rootless_components_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan) {
        const struct rootless_component *all[COMPONENTS_CEILING];
        size_t count = rootless_components_of(cluster, all);

        for (size_t i = 0; i < count; i++) {
                nd_cleanup(nd_strings_done) struct nd_strings argv = {};

                nd_try(all[i]->argv(cluster, &argv)); /* fails if the program is not installed */
                nd_try(all[i]->files(cluster, plan));
        }
        return rootless_cni_files(cluster, plan);
}

struct nd_error *rootless_components_record(const struct rootless_cluster *cluster, const struct rootless_node *node) {
        const struct rootless_component *all[COMPONENTS_CEILING];
        size_t count = rootless_components_of(cluster, all);

        for (size_t i = 0; i < count; i++) {
                nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {
                        .notifies = all[i]->notifies,
                        .stops_first = all[i]->stops_first,
                        .port = all[i]->port ? all[i]->port + cluster->offset : 0,
                        .offset = cluster->offset,
                        .path = nd_strdup(cluster->path),
                        .node_name = nd_strdup(cluster->node_name)};

                nd_try(all[i]->argv(cluster, &record.argv));
                nd_try(rootless_component_record_save(node, all[i]->name, &record));
        }
        return nullptr;
}
