/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - runtime.v1.RuntimeService: resource usage of pods and containers, and metrics
 *
 * Every RPC here works in the same way: its filter is resolved to a query with IDs, and objects
 * that were removed meanwhile are left out of the response. The RPCs differ only in the query and
 * in the response message. */
#include <cri.pb-c.h>

#include "cri/core/parts.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response-pod.h"
#include "cri/rpc/response-stats.h"
#include "cri/rpc/response.h"
#include "cri/stats/pod-metrics.h"

enum {
        PER_MESSAGE = 128,       /* stats per message of a stream */
        METRICS_PER_MESSAGE = 8, /* pods; each container has about a hundred samples */
};

struct pending {
        struct cri_pending_call base;
        struct cri_stats_operation *request;
        void (*respond)(struct pending *pending, const struct cri_stats_result *answer);
};

static void cancel(struct cri_pending_call *pending) {
        cri_stats_query_cancel(((struct pending *) pending)->request);
}

static void on_answer(const struct cri_stats_result *answer, void *userdata) {
        struct pending *pending = userdata;

        cri_pending_call_detach(&pending->base);
        pending->respond(pending, answer);
        free(pending);
}

static void ask(struct nd_grpc_call *call, struct cri_parts *parts, struct cri_stats_query *question,
                void (*respond)(struct pending *pending, const struct cri_stats_result *answer)) {
        struct pending *pending = cri_pending_call_new(struct pending, call, parts, cancel);

        pending->respond = respond;
        cri_stats_query_start(parts->stats, question, on_answer, pending, &pending->request);
        cri_pending_call_attach(&pending->base);
}

/* ---- queries ---- */

static constexpr unsigned container_parts = USAGE_CPU | USAGE_MEMORY | USAGE_PRESSURE;
static constexpr unsigned pod_parts = container_parts | USAGE_PIDS;

/* Containers that never ran, or ran in an earlier boot, have no usage to read. */
static bool counts(const struct cri_container *container) {
        return cri_container_is_shown(container) && container->sandbox->this_boot &&
               (container->state == CONTAINER_RUNNING || container->state == CONTAINER_EXITED);
}

static void ask_of_pod(const struct cri_sandbox *sandbox, struct cri_stats_query *question) {
        nd_vector_each (container, &sandbox->containers) {
                if (counts(*container))
                        nd_strings_add(&question->containers, (*container)->id);
        }
}

static bool wanted(const struct cri_container *container, const Runtime__V1__ContainerStatsFilter *filter) {
        return counts(container) &&
               (!filter || cri_response_selects(&container->request.labels, filter->label_selector, filter->n_label_selector));
}

static void ask_of_containers(const struct cri_parts *parts, const Runtime__V1__ContainerStatsFilter *filter,
                              struct cri_stats_query *question) {
        const struct nd_map_slot *slot;
        struct cri_container *only = nullptr;
        struct cri_sandbox *pod = nullptr;

        question->parts = container_parts;
        question->layers = true;
        if (filter && filter->id[0])
                nd_ignore(cri_pod_table_find_container(&parts->pods, filter->id, &only));
        if (filter && filter->pod_sandbox_id[0])
                nd_ignore(cri_pod_table_find_sandbox(&parts->pods, filter->pod_sandbox_id, &pod));
        if (filter && ((filter->id[0] && !only) || (filter->pod_sandbox_id[0] && !pod)))
                return;
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.containers, &at));) {
                const struct cri_container *container = slot->value;

                if (wanted(container, filter) && (!only || container == only) && (!pod || container->sandbox == pod))
                        nd_strings_add(&question->containers, container->id);
        }
}

static bool wanted_pod(const struct cri_sandbox *sandbox, const Runtime__V1__PodSandboxStatsFilter *filter) {
        return sandbox->state == SANDBOX_READY &&
               (!filter || cri_response_selects(&sandbox->request.labels, filter->label_selector, filter->n_label_selector));
}

static void ask_of_sandboxes(const struct cri_parts *parts, const Runtime__V1__PodSandboxStatsFilter *filter,
                             struct cri_stats_query *question) {
        const struct nd_map_slot *slot;
        struct cri_sandbox *only = nullptr;

        question->parts = pod_parts;
        question->layers = question->networks = true;
        if (filter && filter->id[0]) {
                nd_ignore(cri_pod_table_find_sandbox(&parts->pods, filter->id, &only));
                if (!only)
                        return;
        }
        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;

                if ((only && sandbox != only) || !wanted_pod(sandbox, filter))
                        continue;
                nd_strings_add(&question->sandboxes, sandbox->id);
                ask_of_pod(sandbox, question);
        }
}

/* ---- containers ---- */

struct container_list {
        nd_vector(Runtime__V1__ContainerStats *) items;
        struct nd_arena memory;
};

static void container_list_done(struct container_list *list) {
        nd_vector_done(&list->items);
        nd_arena_done(&list->memory);
}

static void list_containers(const struct cri_parts *parts, const struct cri_stats_result *answer,
                            struct container_list *list) {
        nd_vector_each (stats, &answer->containers) {
                struct cri_container *container = nd_map_get(&parts->pods.containers, stats->id);

                if (container && cri_container_is_shown(container))
                        nd_vector_push(&list->items,
                                       cri_response_container_stats(&list->memory, &parts->config, container, stats));
        }
}

static void respond_container(struct pending *pending, const struct cri_stats_result *answer) {
        Runtime__V1__ContainerStatsResponse response = RUNTIME__V1__CONTAINER_STATS_RESPONSE__INIT;
        nd_cleanup(container_list_done) struct container_list list = {};

        list_containers(pending->base.parts, answer, &list);
        if (list.items.count == 0) {
                nd_grpc_call_finish(pending->base.call,
                                    nd_error_new(ND_NOT_FOUND, 0, "the container was removed or has never run"));
                return;
        }
        response.stats = list.items.items[0];
        cri_response_with(pending->base.call, &response.base);
}

static void respond_containers(struct pending *pending, const struct cri_stats_result *answer) {
        Runtime__V1__ListContainerStatsResponse response = RUNTIME__V1__LIST_CONTAINER_STATS_RESPONSE__INIT;
        nd_cleanup(container_list_done) struct container_list list = {};

        list_containers(pending->base.parts, answer, &list);
        response.n_stats = list.items.count;
        response.stats = list.items.items;
        cri_response_with(pending->base.call, &response.base);
}

static void stream_containers(struct pending *pending, const struct cri_stats_result *answer) {
        nd_cleanup(container_list_done) struct container_list list = {};

        list_containers(pending->base.parts, answer, &list);
        for (size_t i = 0; i < list.items.count; i += PER_MESSAGE) {
                Runtime__V1__StreamContainerStatsResponse response = RUNTIME__V1__STREAM_CONTAINER_STATS_RESPONSE__INIT;
                size_t left = list.items.count - i;

                response.n_container_stats = left < PER_MESSAGE ? left : PER_MESSAGE;
                response.container_stats = list.items.items + i;
                cri_response_send(pending->base.call, &response.base);
        }
        nd_grpc_call_finish(pending->base.call, nullptr);
}

static void handle_container(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__container_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {.parts = container_parts, .layers = true};
        struct cri_container *container = nullptr;
        struct cri_parts *parts = userdata;
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_container(&parts->pods, ((Runtime__V1__ContainerStatsRequest *) request)->container_id,
                                             &container);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_strings_add(&question.containers, container->id);
        ask(call, parts, &question, respond_container);
}

static void handle_containers(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__list_container_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {};

        if (!request)
                return;
        ask_of_containers(userdata, ((Runtime__V1__ListContainerStatsRequest *) request)->filter, &question);
        ask(call, userdata, &question, respond_containers);
}

static void handle_container_stream(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stream_container_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {};

        if (!request)
                return;
        ask_of_containers(userdata, ((Runtime__V1__StreamContainerStatsRequest *) request)->filter, &question);
        ask(call, userdata, &question, stream_containers);
}

/* ---- pods ---- */

/* Maps IDs to the containers of a result, so that each pod finds its own. */
static void index_containers(const struct cri_stats_result *answer, struct nd_map *ret) {
        nd_vector_each (stats, &answer->containers) {
                (void) nd_map_put(ret, stats->id, (void *) stats);
        }
}

struct pod_list {
        nd_vector(Runtime__V1__PodSandboxStats *) items;
        struct nd_arena memory;
};

static void pod_list_done(struct pod_list *list) {
        nd_vector_done(&list->items);
        nd_arena_done(&list->memory);
}

static void list_pods(const struct cri_parts *parts, const struct cri_stats_result *answer, struct pod_list *list) {
        nd_cleanup(nd_map_done) struct nd_map containers = {};

        index_containers(answer, &containers);
        nd_vector_each (stats, &answer->sandboxes) {
                struct cri_sandbox *sandbox = nd_map_get(&parts->pods.sandboxes, stats->id);

                if (sandbox && cri_sandbox_is_shown(sandbox))
                        nd_vector_push(&list->items,
                                       cri_response_sandbox_stats(&list->memory, &parts->config, sandbox, stats, &containers));
        }
}

static void respond_pod(struct pending *pending, const struct cri_stats_result *answer) {
        Runtime__V1__PodSandboxStatsResponse response = RUNTIME__V1__POD_SANDBOX_STATS_RESPONSE__INIT;
        nd_cleanup(pod_list_done) struct pod_list list = {};

        list_pods(pending->base.parts, answer, &list);
        if (list.items.count == 0) {
                nd_grpc_call_finish(pending->base.call, nd_error_new(ND_NOT_FOUND, 0, "the pod sandbox was removed"));
                return;
        }
        response.stats = list.items.items[0];
        cri_response_with(pending->base.call, &response.base);
}

static void respond_pods(struct pending *pending, const struct cri_stats_result *answer) {
        Runtime__V1__ListPodSandboxStatsResponse response = RUNTIME__V1__LIST_POD_SANDBOX_STATS_RESPONSE__INIT;
        nd_cleanup(pod_list_done) struct pod_list list = {};

        list_pods(pending->base.parts, answer, &list);
        response.n_stats = list.items.count;
        response.stats = list.items.items;
        cri_response_with(pending->base.call, &response.base);
}

static void stream_pods(struct pending *pending, const struct cri_stats_result *answer) {
        nd_cleanup(pod_list_done) struct pod_list list = {};

        list_pods(pending->base.parts, answer, &list);
        for (size_t i = 0; i < list.items.count; i += PER_MESSAGE) {
                Runtime__V1__StreamPodSandboxStatsResponse response = RUNTIME__V1__STREAM_POD_SANDBOX_STATS_RESPONSE__INIT;
                size_t left = list.items.count - i;

                response.n_pod_sandbox_stats = left < PER_MESSAGE ? left : PER_MESSAGE;
                response.pod_sandbox_stats = list.items.items + i;
                cri_response_send(pending->base.call, &response.base);
        }
        nd_grpc_call_finish(pending->base.call, nullptr);
}

static void handle_pod(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__pod_sandbox_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {
                .parts = pod_parts, .layers = true, .networks = true};
        struct cri_parts *parts = userdata;
        struct cri_sandbox *sandbox = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_sandbox(&parts->pods, ((Runtime__V1__PodSandboxStatsRequest *) request)->pod_sandbox_id,
                                           &sandbox);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_strings_add(&question.sandboxes, sandbox->id);
        ask_of_pod(sandbox, &question);
        ask(call, parts, &question, respond_pod);
}

static void handle_pods(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__list_pod_sandbox_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {};

        if (!request)
                return;
        ask_of_sandboxes(userdata, ((Runtime__V1__ListPodSandboxStatsRequest *) request)->filter, &question);
        ask(call, userdata, &question, respond_pods);
}

static void handle_pod_stream(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__stream_pod_sandbox_stats_request__descriptor, bytes, length);
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {};

        if (!request)
                return;
        ask_of_sandboxes(userdata, ((Runtime__V1__StreamPodSandboxStatsRequest *) request)->filter, &question);
        ask(call, userdata, &question, stream_pods);
}

/* ---- metrics ---- */

static size_t label_count(const struct cri_pod_metric *metric) {
        size_t count = METRIC_BASE;

        for (size_t i = 0; i < METRIC_MORE && metric->more[i]; i++)
                count++;
        return count;
}

static Runtime__V1__MetricDescriptor *response_descriptor(struct nd_arena *memory, const struct cri_pod_metric *metric) {
        Runtime__V1__MetricDescriptor *m =
                cri_response_new(memory, Runtime__V1__MetricDescriptor, runtime__v1__metric_descriptor__descriptor);
        size_t count = label_count(metric);

        m->name = (char *) metric->name;
        m->help = (char *) metric->help;
        m->n_label_keys = count;
        m->label_keys = nd_arena_alloc(memory, count, sizeof *m->label_keys);
        for (size_t i = 0; i < count; i++)
                m->label_keys[i] = (char *) (i < METRIC_BASE ? cri_pod_metric_base_labels[i] : metric->more[i - METRIC_BASE]);
        return m;
}

static void handle_descriptors(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                               [[maybe_unused]] void *userdata) {
        Runtime__V1__ListMetricDescriptorsResponse answer = RUNTIME__V1__LIST_METRIC_DESCRIPTORS_RESPONSE__INIT;
        nd_autoarena struct nd_arena memory = {};

        answer.n_descriptors = cri_pod_metrics_count();
        answer.descriptors = nd_arena_alloc(&memory, answer.n_descriptors, sizeof *answer.descriptors);
        for (size_t i = 0; i < answer.n_descriptors; i++)
                answer.descriptors[i] = response_descriptor(&memory, cri_pod_metrics_at(i));
        cri_response_with(call, &answer.base);
}

static Runtime__V1__Metric *response_metric(struct nd_arena *memory, const struct cri_pod_metric_sample *sample,
                                            const char *const *labels, uint64_t at) {
        Runtime__V1__Metric *m = cri_response_new(memory, Runtime__V1__Metric, runtime__v1__metric__descriptor);
        size_t count = label_count(sample->metric);

        m->name = (char *) sample->metric->name;
        m->timestamp = (int64_t) at;
        m->metric_type = sample->metric->counter ? RUNTIME__V1__METRIC_TYPE__COUNTER : RUNTIME__V1__METRIC_TYPE__GAUGE;
        m->n_label_values = count;
        m->label_values = nd_arena_alloc(memory, count, sizeof *m->label_values);
        for (size_t i = 0; i < count; i++)
                m->label_values[i] = (char *) (i < METRIC_BASE ? labels[i] : sample->more[i - METRIC_BASE] ?: "");
        m->value = cri_response_new(memory, Runtime__V1__UInt64Value, runtime__v1__uint64_value__descriptor);
        m->value->value = sample->value;
        return m;
}

static Runtime__V1__Metric **response_metrics(struct nd_arena *memory, const struct cri_pod_metric_sample *samples,
                                              size_t count, const char *const *labels, uint64_t at) {
        Runtime__V1__Metric **list = nd_arena_alloc(memory, count, sizeof *list);

        for (size_t i = 0; i < count; i++)
                list[i] = response_metric(memory, &samples[i], labels, at);
        return list;
}

static Runtime__V1__ContainerMetrics *response_container_metrics(struct nd_arena *memory,
                                                                 const struct cri_container *container,
                                                                 const struct cri_container_stats *stats,
                                                                 enum cri_pod_metric_detail detail) {
        Runtime__V1__ContainerMetrics *m =
                cri_response_new(memory, Runtime__V1__ContainerMetrics, runtime__v1__container_metrics__descriptor);
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        const char *labels[METRIC_BASE];

        cri_pod_metrics_labels(container->sandbox, container, labels);
        m->container_id = (char *) container->id;
        m->n_metrics = cri_pod_metrics_of_container(container, stats, detail, samples);
        m->metrics = response_metrics(memory, samples, m->n_metrics, labels, stats->usage.at);
        return m;
}

static Runtime__V1__PodSandboxMetrics *response_pod_metrics(struct nd_arena *memory, const struct cri_sandbox *sandbox,
                                                            const struct cri_sandbox_stats *stats,
                                                            const struct nd_map *containers,
                                                            enum cri_pod_metric_detail detail) {
        Runtime__V1__PodSandboxMetrics *m =
                cri_response_new(memory, Runtime__V1__PodSandboxMetrics, runtime__v1__pod_sandbox_metrics__descriptor);
        struct cri_pod_metric_sample samples[METRIC_SAMPLES];
        const char *labels[METRIC_BASE];

        cri_pod_metrics_labels(sandbox, nullptr, labels);
        m->pod_sandbox_id = (char *) sandbox->id;
        m->n_metrics = cri_pod_metrics_of_sandbox(stats, detail, samples);
        m->metrics = response_metrics(memory, samples, m->n_metrics, labels, stats->usage.at ?: stats->network.at);
        m->container_metrics = nd_arena_alloc(memory, sandbox->containers.count, sizeof *m->container_metrics);
        nd_vector_each (container, &sandbox->containers) {
                const struct cri_container_stats *its = nd_map_get(containers, (*container)->id);

                if (its && its->usage.at > 0)
                        m->container_metrics[m->n_container_metrics++] =
                                response_container_metrics(memory, *container, its, detail);
        }
        return m;
}

/* Messages are packed pod by pod, so that only their encoded form is held for all pods at once:
 * concatenated protobuf messages are one message with the contents of all. */
static void pack_pods(const struct cri_parts *parts, const struct cri_stats_result *answer, enum cri_pod_metric_detail detail,
                      struct nd_text *ret) {
        nd_cleanup(nd_map_done) struct nd_map containers = {};

        index_containers(answer, &containers);
        nd_vector_each (stats, &answer->sandboxes) {
                Runtime__V1__ListPodSandboxMetricsResponse response = RUNTIME__V1__LIST_POD_SANDBOX_METRICS_RESPONSE__INIT;
                const struct cri_sandbox *sandbox = nd_map_get(&parts->pods.sandboxes, stats->id);
                Runtime__V1__PodSandboxMetrics *pod;
                nd_autoarena struct nd_arena memory = {};
                nd_autotext struct nd_text bytes = {};

                if (!sandbox || !cri_sandbox_is_shown(sandbox))
                        continue;
                pod = response_pod_metrics(&memory, sandbox, stats, &containers, detail);
                response.n_pod_metrics = 1;
                response.pod_metrics = &pod;
                nd_protobuf_pack(&response.base, &bytes);
                nd_text_append(ret, nd_text_get(&bytes), bytes.length);
                if (ret->overflow)
                        return;
        }
}

/* If everything does not fit into one message, only the core metrics are sent; the streaming RPC
 * has no such limit. */
static void respond_metrics(struct pending *pending, const struct cri_stats_result *answer) {
        static const enum cri_pod_metric_detail details[] = {METRICS_ALL, METRICS_CORE};

        for (size_t i = 0; i < nd_count_of(details); i++) {
                nd_autotext struct nd_text bytes = ND_TEXT(ND_GRPC_MESSAGE);

                pack_pods(pending->base.parts, answer, details[i], &bytes);
                if (bytes.overflow)
                        continue;
                nd_grpc_call_send(pending->base.call, nd_text_get(&bytes), bytes.length);
                nd_grpc_call_finish(pending->base.call, nullptr);
                return;
        }
        nd_grpc_call_finish(pending->base.call,
                            nd_error_new(ND_EXHAUSTED, 0,
                                         "the metrics of %zu pods do not fit into one response of %d bytes: enable "
                                         "the kubelet's feature gate CRIListStreaming",
                                         answer->sandboxes.count, ND_GRPC_MESSAGE));
}

static void send_stream(struct pending *pending, Runtime__V1__PodSandboxMetrics **pods, size_t count) {
        Runtime__V1__StreamPodSandboxMetricsResponse response = RUNTIME__V1__STREAM_POD_SANDBOX_METRICS_RESPONSE__INIT;

        response.n_pod_sandbox_metrics = count;
        response.pod_sandbox_metrics = pods;
        if (count > 0)
                cri_response_send(pending->base.call, &response.base);
}

static void stream_metrics(struct pending *pending, const struct cri_stats_result *answer) {
        nd_cleanup(nd_map_done) struct nd_map containers = {};
        Runtime__V1__PodSandboxMetrics *pods[METRICS_PER_MESSAGE];
        nd_autoarena struct nd_arena memory = {};
        size_t count = 0;

        index_containers(answer, &containers);
        nd_vector_each (stats, &answer->sandboxes) {
                const struct cri_sandbox *sandbox = nd_map_get(&pending->base.parts->pods.sandboxes, stats->id);

                if (!sandbox || !cri_sandbox_is_shown(sandbox))
                        continue;
                pods[count++] = response_pod_metrics(&memory, sandbox, stats, &containers, METRICS_ALL);
                if (count < METRICS_PER_MESSAGE)
                        continue;
                send_stream(pending, pods, count);
                nd_arena_done(&memory);
                count = 0;
        }
        send_stream(pending, pods, count);
        nd_grpc_call_finish(pending->base.call, nullptr);
}

static void ask_metrics(struct nd_grpc_call *call, struct cri_parts *parts,
                        void (*respond)(struct pending *pending, const struct cri_stats_result *answer)) {
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {};

        ask_of_sandboxes(parts, nullptr, &question);
        question.parts = USAGE_ALL;
        question.processes = true;
        ask(call, parts, &question, respond);
}

static void handle_metrics(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                           void *userdata) {
        ask_metrics(call, userdata, respond_metrics);
}

static void handle_metrics_stream(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes,
                                  [[maybe_unused]] size_t length, void *userdata) {
        ask_metrics(call, userdata, stream_metrics);
}

const struct nd_grpc_method cri_rpc_stats_methods[] = {
        {"/runtime.v1.RuntimeService/ContainerStats", handle_container},
        {"/runtime.v1.RuntimeService/ListContainerStats", handle_containers},
        {"/runtime.v1.RuntimeService/StreamContainerStats", handle_container_stream},
        {"/runtime.v1.RuntimeService/PodSandboxStats", handle_pod},
        {"/runtime.v1.RuntimeService/ListPodSandboxStats", handle_pods},
        {"/runtime.v1.RuntimeService/StreamPodSandboxStats", handle_pod_stream},
        {"/runtime.v1.RuntimeService/ListMetricDescriptors", handle_descriptors},
        {"/runtime.v1.RuntimeService/ListPodSandboxMetrics", handle_metrics},
        {"/runtime.v1.RuntimeService/StreamPodSandboxMetrics", handle_metrics_stream},
        {},
};
