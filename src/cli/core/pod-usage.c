/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/pod-usage.h"

#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "cli/core/client.h"
#include "net/protobuf.h"

void cli_usage_rows_done(struct cli_usage_rows *rows) {
        nd_vector_done(rows);
}

void cli_usage_sample_done(struct cli_usage_sample *sample) {
        nd_protobuf_free(sample->pods);
        nd_protobuf_free(sample->usage);
        *sample = (struct cli_usage_sample) {};
}

struct nd_error *cli_usage_sample_take(const char *socket, struct cli_usage_sample *ret) {
        Nodens__V1__PodsRequest pods = NODENS__V1__PODS_REQUEST__INIT;
        Nodens__V1__UsageRequest usage = NODENS__V1__USAGE_REQUEST__INIT;
        nd_cleanup(cli_usage_sample_done) struct cli_usage_sample sample = {};

        nd_try(cli_client_call(socket, "/nodens.v1.Node/Pods", &pods.base, &nodens__v1__pods_answer__descriptor,
                               &sample.pods));
        nd_try(cli_client_call(socket, "/nodens.v1.Node/Usage", &usage.base, &nodens__v1__usage_answer__descriptor,
                               &sample.usage));
        *ret = nd_take(sample, (struct cli_usage_sample) {});
        return nullptr;
}

bool cli_usage_rate(const Nodens__V1__Usage *before, const Nodens__V1__Usage *now, uint64_t *ret) {
        if (!before || !now->has_cpu || !before->has_cpu || before->at == 0 || now->at <= before->at || now->cpu < before->cpu)
                return false;
        *ret = (uint64_t) ((double) (now->cpu - before->cpu) * 1e9 / (double) (now->at - before->at));
        return true;
}

/* ---- lookup by ID ---- */

static const Nodens__V1__UsageAnswer *usage_of(const struct cli_usage_sample *sample) {
        return (const Nodens__V1__UsageAnswer *) sample->usage;
}

/* Maps IDs to the usage of pods and containers; IDs of both are random, so one map holds them. */
static void index_usage(const struct cli_usage_sample *sample, struct nd_map *ret) {
        for (size_t i = 0; sample->usage && i < usage_of(sample)->n_pods; i++) {
                const Nodens__V1__PodUsage *pod = usage_of(sample)->pods[i];

                (void) nd_map_put(ret, pod->id, pod->usage);
                for (size_t c = 0; c < pod->n_containers; c++)
                        (void) nd_map_put(ret, pod->containers[c]->id, pod->containers[c]->usage);
        }
}

static void index_pods(const struct cli_usage_sample *sample, struct nd_map *ret) {
        const Nodens__V1__PodsAnswer *answer = (const Nodens__V1__PodsAnswer *) sample->pods;

        for (size_t i = 0; i < answer->n_pods; i++)
                (void) nd_map_put(ret, answer->pods[i]->id, answer->pods[i]);
}

static const Nodens__V1__ContainerEntry *find_container(const Nodens__V1__PodEntry *pod, const char *id) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (nd_streq(pod->containers[i]->id, id))
                        return pod->containers[i];
        return nullptr;
}

/* ---- rows ---- */

static int by_name(const void *a, const void *b) {
        const struct cli_usage_row *left = a, *right = b;
        int r = strcmp(left->pod->namespace_, right->pod->namespace_);

        if (r == 0)
                r = strcmp(left->pod->name, right->pod->name);
        if (r == 0 && left->container && right->container)
                r = strcmp(left->container->name, right->container->name);
        return r;
}

static int by_cpu(const void *a, const void *b) {
        const struct cli_usage_row *left = a, *right = b;
        uint64_t l = left->has_rate ? left->nano_cores + 1 : 0, r = right->has_rate ? right->nano_cores + 1 : 0;

        return l != r ? (int) (l < r) - (int) (l > r) : by_name(a, b);
}

static void sort(struct cli_usage_rows *rows, int (*order)(const void *, const void *)) {
        if (rows->count > 1)
                qsort(rows->items, rows->count, sizeof *rows->items, order);
}

void cli_usage_sort_by_cpu(struct cli_usage_rows *rows) {
        sort(rows, by_cpu);
}

static void add_row(struct cli_usage_rows *rows, const struct nd_map *before, const char *id, struct cli_usage_row row) {
        row.has_rate = cli_usage_rate(nd_map_get(before, id), row.usage, &row.nano_cores);
        nd_vector_push(rows, row);
}

static void add_containers(struct cli_usage_rows *rows, const struct nd_map *before, const Nodens__V1__PodEntry *pod,
                           const Nodens__V1__PodUsage *usage) {
        for (size_t i = 0; i < usage->n_containers; i++) {
                const Nodens__V1__ContainerUsage *one = usage->containers[i];
                const Nodens__V1__ContainerEntry *container = find_container(pod, one->id);

                if (container && one->usage)
                        add_row(rows, before, one->id,
                                (struct cli_usage_row) {.pod = pod,
                                                        .container = container,
                                                        .usage = one->usage,
                                                        .has_disk = one->has_disk,
                                                        .disk = one->disk});
        }
}

static void add_pod(struct cli_usage_rows *rows, const struct nd_map *before, const Nodens__V1__PodEntry *pod,
                    const Nodens__V1__PodUsage *usage) {
        add_row(rows, before, usage->id,
                (struct cli_usage_row) {.pod = pod,
                                        .usage = usage->usage,
                                        .has_network = usage->has_network,
                                        .received = usage->received,
                                        .sent = usage->sent});
}

static void list(const struct cli_usage_sample *before, const struct cli_usage_sample *now, struct cli_usage_rows *ret,
                 void (*add)(struct cli_usage_rows *rows, const struct nd_map *before, const Nodens__V1__PodEntry *pod,
                             const Nodens__V1__PodUsage *usage)) {
        nd_cleanup(nd_map_done) struct nd_map usages = {}, pods = {};

        index_usage(before, &usages);
        index_pods(now, &pods);
        for (size_t i = 0; i < usage_of(now)->n_pods; i++) {
                const Nodens__V1__PodEntry *pod = nd_map_get(&pods, usage_of(now)->pods[i]->id);

                if (pod && usage_of(now)->pods[i]->usage)
                        add(ret, &usages, pod, usage_of(now)->pods[i]);
        }
        sort(ret, by_name);
}

void cli_usage_of_containers(const struct cli_usage_sample *before, const struct cli_usage_sample *now,
                             struct cli_usage_rows *ret) {
        list(before, now, ret, add_containers);
}

void cli_usage_of_pods(const struct cli_usage_sample *before, const struct cli_usage_sample *now, struct cli_usage_rows *ret) {
        list(before, now, ret, add_pod);
}
