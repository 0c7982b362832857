/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/rpc/response-stats.h"

#include "cri/core/config.h"
#include "cri/rpc/response-pod.h"

static Runtime__V1__UInt64Value *number(struct nd_arena *memory, uint64_t value) {
        Runtime__V1__UInt64Value *m =
                cri_response_new(memory, Runtime__V1__UInt64Value, runtime__v1__uint64_value__descriptor);

        m->value = value;
        return m;
}

/* ---- values ---- */

static Runtime__V1__PsiData *response_pressure(struct nd_arena *memory, const struct cri_pressure *pressure) {
        Runtime__V1__PsiData *m = cri_response_new(memory, Runtime__V1__PsiData, runtime__v1__psi_data__descriptor);

        m->total = pressure->total;
        m->avg10 = pressure->average10;
        m->avg60 = pressure->average60;
        m->avg300 = pressure->average300;
        return m;
}

static Runtime__V1__PsiStats *response_pressures(struct nd_arena *memory, const struct cri_pressures *pressures) {
        Runtime__V1__PsiStats *m;

        if (!pressures->known)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__PsiStats, runtime__v1__psi_stats__descriptor);
        m->full = response_pressure(memory, &pressures->full);
        m->some = response_pressure(memory, &pressures->some);
        return m;
}

/* Nanoseconds of CPU per second between two requests, at least a second apart. */
static void update_rate(struct cri_cpu_rate *rate, const struct cri_usage *usage) {
        constexpr uint64_t least_ns = 1000 * 1000 * 1000;

        if (rate->at > 0 && usage->at >= rate->at && usage->at - rate->at < least_ns)
                return;
        rate->known = rate->at > 0 && usage->at > rate->at && usage->cpu >= rate->used;
        if (rate->known)
                rate->nano_cores = (uint64_t) ((double) (usage->cpu - rate->used) * 1e9 / (double) (usage->at - rate->at));
        rate->used = usage->cpu;
        rate->at = usage->at;
}

static Runtime__V1__CpuUsage *response_cpu(struct nd_arena *memory, const struct cri_usage *usage, struct cri_cpu_rate *rate) {
        Runtime__V1__CpuUsage *m;

        if (!usage->has_cpu)
                return nullptr;
        update_rate(rate, usage);
        m = cri_response_new(memory, Runtime__V1__CpuUsage, runtime__v1__cpu_usage__descriptor);
        m->timestamp = (int64_t) usage->at;
        m->usage_core_nano_seconds = number(memory, usage->cpu);
        m->usage_nano_cores = rate->known ? number(memory, rate->nano_cores) : nullptr;
        m->psi = response_pressures(memory, &usage->cpu_pressure);
        return m;
}

static Runtime__V1__MemoryUsage *response_memory_usage(struct nd_arena *memory, const struct cri_usage *usage) {
        Runtime__V1__MemoryUsage *m;

        if (!usage->has_memory)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__MemoryUsage, runtime__v1__memory_usage__descriptor);
        m->timestamp = (int64_t) usage->at;
        m->working_set_bytes = number(memory, usage->working_set);
        if (usage->memory_limit != UINT64_MAX)
                m->available_bytes = number(
                        memory, usage->memory_limit > usage->working_set ? usage->memory_limit - usage->working_set : 0);
        m->usage_bytes = number(memory, usage->memory);
        m->rss_bytes = number(memory, usage->anonymous);
        m->page_faults = number(memory, usage->faults);
        m->major_page_faults = number(memory, usage->major_faults);
        m->psi = response_pressures(memory, &usage->memory_pressure);
        return m;
}

static Runtime__V1__SwapUsage *response_swap(struct nd_arena *memory, const struct cri_usage *usage) {
        Runtime__V1__SwapUsage *m;

        if (!usage->has_swap)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__SwapUsage, runtime__v1__swap_usage__descriptor);
        m->timestamp = (int64_t) usage->at;
        m->swap_usage_bytes = number(memory, usage->swap);
        if (usage->swap_limit != UINT64_MAX)
                m->swap_available_bytes =
                        number(memory, usage->swap_limit > usage->swap ? usage->swap_limit - usage->swap : 0);
        return m;
}

static Runtime__V1__IoUsage *response_io(struct nd_arena *memory, const struct cri_usage *usage) {
        Runtime__V1__IoUsage *m;

        if (!usage->io_pressure.known)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__IoUsage, runtime__v1__io_usage__descriptor);
        m->timestamp = (int64_t) usage->at;
        m->psi = response_pressures(memory, &usage->io_pressure);
        return m;
}

static Runtime__V1__FilesystemUsage *response_layer(struct nd_arena *memory, const struct cri_config *config,
                                                    const struct cri_tree_usage *layer) {
        Runtime__V1__FilesystemUsage *m;

        if (layer->at == 0)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__FilesystemUsage, runtime__v1__filesystem_usage__descriptor);
        m->timestamp = (int64_t) layer->at;
        m->fs_id = cri_response_new(memory, Runtime__V1__FilesystemIdentifier, runtime__v1__filesystem_identifier__descriptor);
        m->fs_id->mountpoint = config->state;
        m->used_bytes = number(memory, layer->bytes);
        m->inodes_used = number(memory, layer->inodes);
        return m;
}

static Runtime__V1__NetworkInterfaceUsage *response_interface(struct nd_arena *memory,
                                                              const struct cri_interface_usage *interface) {
        Runtime__V1__NetworkInterfaceUsage *m =
                cri_response_new(memory, Runtime__V1__NetworkInterfaceUsage, runtime__v1__network_interface_usage__descriptor);

        m->name = nd_arena_strdup(memory, interface->name);
        m->rx_bytes = number(memory, interface->received);
        m->rx_errors = number(memory, interface->received_errors);
        m->tx_bytes = number(memory, interface->sent);
        m->tx_errors = number(memory, interface->sent_errors);
        return m;
}

/* CNI's first interface is the pod's default interface. */
static Runtime__V1__NetworkUsage *response_network_usage(struct nd_arena *memory, const struct cri_network_usage *network) {
        Runtime__V1__NetworkUsage *m;

        if (network->at == 0 || network->count == 0)
                return nullptr;
        m = cri_response_new(memory, Runtime__V1__NetworkUsage, runtime__v1__network_usage__descriptor);
        m->timestamp = (int64_t) network->at;
        m->default_interface = response_interface(memory, &network->interfaces[0]);
        m->n_interfaces = network->count - 1;
        m->interfaces = nd_arena_alloc(memory, network->count, sizeof *m->interfaces);
        for (size_t i = 1; i < network->count; i++)
                m->interfaces[i - 1] = response_interface(memory, &network->interfaces[i]);
        return m;
}

/* ---- containers ---- */

static Runtime__V1__ContainerAttributes *response_attributes(struct nd_arena *memory, const struct cri_container *container) {
        Runtime__V1__ContainerAttributes *m =
                cri_response_new(memory, Runtime__V1__ContainerAttributes, runtime__v1__container_attributes__descriptor);
        const struct cri_container_request *request = &container->request;

        m->id = (char *) container->id;
        m->metadata = cri_response_container_metadata(memory, request);
        m->n_labels = request->labels.count;
        m->labels =
                cri_response_entries(memory, &runtime__v1__container_attributes__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations = cri_response_entries(memory, &runtime__v1__container_attributes__annotations_entry__descriptor,
                                              &request->annotations);
        return m;
}

Runtime__V1__ContainerStats *cri_response_container_stats(struct nd_arena *memory, const struct cri_config *config,
                                                          struct cri_container *container,
                                                          const struct cri_container_stats *stats) {
        Runtime__V1__ContainerStats *m =
                cri_response_new(memory, Runtime__V1__ContainerStats, runtime__v1__container_stats__descriptor);

        m->attributes = response_attributes(memory, container);
        m->writable_layer = response_layer(memory, config, &stats->layer);
        if (stats->usage.at == 0)
                return m;
        m->cpu = response_cpu(memory, &stats->usage, &container->rate);
        m->memory = response_memory_usage(memory, &stats->usage);
        m->swap = response_swap(memory, &stats->usage);
        m->io = response_io(memory, &stats->usage);
        return m;
}

/* ---- pods ---- */

static Runtime__V1__PodSandboxAttributes *response_pod_attributes(struct nd_arena *memory, const struct cri_sandbox *sandbox) {
        Runtime__V1__PodSandboxAttributes *m =
                cri_response_new(memory, Runtime__V1__PodSandboxAttributes, runtime__v1__pod_sandbox_attributes__descriptor);
        const struct cri_sandbox_request *request = &sandbox->request;

        m->id = (char *) sandbox->id;
        m->metadata = cri_response_pod_metadata(memory, request);
        m->n_labels = request->labels.count;
        m->labels =
                cri_response_entries(memory, &runtime__v1__pod_sandbox_attributes__labels_entry__descriptor, &request->labels);
        m->n_annotations = request->annotations.count;
        m->annotations = cri_response_entries(memory, &runtime__v1__pod_sandbox_attributes__annotations_entry__descriptor,
                                              &request->annotations);
        return m;
}

static void add_containers(struct nd_arena *memory, const struct cri_config *config, const struct cri_sandbox *sandbox,
                           const struct nd_map *containers, Runtime__V1__LinuxPodSandboxStats *m) {
        m->containers = nd_arena_alloc(memory, sandbox->containers.count, sizeof *m->containers);
        nd_vector_each (container, &sandbox->containers) {
                const struct cri_container_stats *stats = nd_map_get(containers, (*container)->id);

                if (stats && cri_container_is_shown(*container))
                        m->containers[m->n_containers++] = cri_response_container_stats(memory, config, *container, stats);
        }
}

Runtime__V1__PodSandboxStats *cri_response_sandbox_stats(struct nd_arena *memory, const struct cri_config *config,
                                                         struct cri_sandbox *sandbox, const struct cri_sandbox_stats *stats,
                                                         const struct nd_map *containers) {
        Runtime__V1__PodSandboxStats *m =
                cri_response_new(memory, Runtime__V1__PodSandboxStats, runtime__v1__pod_sandbox_stats__descriptor);

        m->attributes = response_pod_attributes(memory, sandbox);
        m->linux =
                cri_response_new(memory, Runtime__V1__LinuxPodSandboxStats, runtime__v1__linux_pod_sandbox_stats__descriptor);
        m->linux->network = response_network_usage(memory, &stats->network);
        add_containers(memory, config, sandbox, containers, m->linux);
        if (stats->usage.at == 0)
                return m;
        m->linux->cpu = response_cpu(memory, &stats->usage, &sandbox->rate);
        m->linux->memory = response_memory_usage(memory, &stats->usage);
        m->linux->io = response_io(memory, &stats->usage);
        if (stats->usage.has_pids) {
                m->linux->process =
                        cri_response_new(memory, Runtime__V1__ProcessUsage, runtime__v1__process_usage__descriptor);
                m->linux->process->timestamp = (int64_t) stats->usage.at;
                m->linux->process->process_count = number(memory, stats->usage.pids);
        }
        return m;
}
