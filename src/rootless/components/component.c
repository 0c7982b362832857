/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/component.h"

#include "rootless/components/cni.h"
#include "rootless/components/record.h"

size_t rootless_components_of(const struct rootless_cluster *cluster,
                              const struct rootless_component *ret[static COMPONENTS_CEILING]) {
        size_t count = 0;

        if (cluster->plane.directory) {
                ret[count++] = &rootless_component_etcd;
                ret[count++] = &rootless_component_apiserver;
                ret[count++] = &rootless_component_controller_manager;
                ret[count++] = &rootless_component_scheduler;
        }
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
                if (all[i]->files)
                        nd_try(all[i]->files(cluster, plan));
        }
        return rootless_cni_files(cluster, plan);
}

/* In a cluster of the user's own everything waits for the API server. kube-proxy of a node with a
 * bootstrap token needs the certificate that the kubelet gets. */
static const char *after_of(const struct rootless_cluster *cluster, const struct rootless_component *component) {
        if (cluster->credentials.bootstrap && component == &rootless_component_proxy)
                return "kubelet";
        return cluster->plane.directory && component->after ? component->after : "";
}

struct nd_error *rootless_components_record(const struct rootless_cluster *cluster, const struct rootless_node *node) {
        const struct rootless_component *all[COMPONENTS_CEILING];
        size_t count = rootless_components_of(cluster, all);

        for (size_t i = 0; i < count; i++) {
                char *publish = all[i]->publish ? all[i]->publish(cluster) : nullptr;
                const char *after = after_of(cluster, all[i]);
                nd_cleanup(rootless_component_record_done) struct rootless_component_record record = {
                        .notifies = all[i]->notifies,
                        .stops_first = all[i]->stops_first,
                        .outside = all[i]->outside,
                        .after = nd_strdup(after),
                        .publish = publish ? publish : nd_strdup(""),
                        .offset = cluster->offset,
                        .path = nd_strdup(cluster->path),
                        .node_name = nd_strdup(cluster->node_name)};

                nd_try(all[i]->argv(cluster, &record.argv));
                nd_try(rootless_component_record_save(node, all[i]->name, &record));
        }
        return nullptr;
}
