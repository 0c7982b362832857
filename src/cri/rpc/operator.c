/* SPDX-License-Identifier: Apache-2.0 */
/* operator.c - nodens.v1.Node: operations on pods for operators, without a kubelet
 *
 * Exec, Attach, Forward and Usage are the CRI's calls as messages of our own service, which the
 * command line uses.
 * Remove does the work of several kubelet calls: it stops the containers in parallel with their
 * grace period, then removes the sandbox. Once begun it runs to completion, even if the caller
 * disconnects, so that no pod is left half removed. */
#include <string.h>

#include <nodens.pb-c.h>

#include "base/log.h"
#include "cri/core/parts.h"
#include "cri/pod/container.h"
#include "cri/pod/sandbox.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response.h"
#include "cri/stats/stats.h"
#include "cri/stream/server.h"

/* ---- exec ---- */

static struct nd_error *offer_exec(struct cri_parts *parts, const Nodens__V1__ExecRequest *r, char **ret) {
        struct cri_container *container = nullptr;
        struct cri_stream_request *request;

        nd_try(cri_pod_table_find_running(&parts->pods, r->container, &container));
        if (r->n_command == 0)
                return nd_error_new(ND_INVALID, 0, "no command given for container '%s'", container->id);
        request = nd_new(struct cri_stream_request);
        *request = (struct cri_stream_request) {.kind = STREAM_EXEC,
                                                .container = nd_strdup(container->id),
                                                .terminal = r->terminal,
                                                .input = r->input,
                                                .output = true,
                                                .errors = !r->terminal};
        for (size_t i = 0; i < r->n_command; i++)
                nd_strings_add(&request->command, r->command[i]);
        return cri_stream_server_offer(parts->streams, request, ret);
}

static void handle_exec(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__exec_request__descriptor, bytes, length);
        Nodens__V1__ExecAnswer answer = NODENS__V1__EXEC_ANSWER__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = offer_exec(userdata, (const Nodens__V1__ExecRequest *) request, &url);
        answer.url = url;
        cri_response_finish(call, error, &answer.base);
}

/* ---- attach ---- */

/* The container decides whether there is a terminal. */
static struct nd_error *offer_attach(struct cri_parts *parts, const Nodens__V1__AttachRequest *r, char **ret,
                                     bool *ret_terminal) {
        struct cri_container *container = nullptr;
        struct cri_stream_request *request;
        bool terminal;

        nd_try(cri_pod_table_find_running(&parts->pods, r->container, &container));
        terminal = container->request.tty;
        if (r->input && !container->request.stdin_open)
                return nd_error_new(
                        ND_PRECONDITION, 0,
                        "container '%.12s' has no standard input: its pod does not set 'stdin: true'; attach without -i",
                        container->id);
        request = nd_new(struct cri_stream_request);
        *request = (struct cri_stream_request) {.kind = STREAM_ATTACH,
                                                .container = nd_strdup(container->id),
                                                .terminal = terminal,
                                                .input = r->input,
                                                .output = true,
                                                .errors = !terminal};
        nd_try(cri_stream_server_offer(parts->streams, request, ret));
        *ret_terminal = terminal;
        return nullptr;
}

static void handle_attach(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__attach_request__descriptor, bytes, length);
        Nodens__V1__AttachAnswer answer = NODENS__V1__ATTACH_ANSWER__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;
        bool terminal = false;

        if (!request)
                return;
        error = offer_attach(userdata, (const Nodens__V1__AttachRequest *) request, &url, &terminal);
        answer.url = url;
        answer.terminal = terminal;
        cri_response_finish(call, error, &answer.base);
}

/* ---- port-forward ---- */

static struct nd_error *offer_forward(struct cri_parts *parts, const Nodens__V1__ForwardRequest *r, char **ret) {
        struct cri_sandbox *sandbox = nullptr;
        struct cri_stream_request *request;

        if (r->port < 1 || r->port > UINT16_MAX)
                return nd_error_new(ND_INVALID, 0, "invalid port %u", r->port);
        nd_try(cri_pod_table_find_sandbox(&parts->pods, r->sandbox, &sandbox));
        if (sandbox->state != SANDBOX_READY)
                return nd_error_new(ND_PRECONDITION, 0, "pod %s/%s has been stopped", sandbox->request.namespace,
                                    sandbox->request.name);
        request = nd_new(struct cri_stream_request);
        *request = (struct cri_stream_request) {
                .kind = STREAM_FORWARD, .container = nd_strdup(sandbox->id), .ports = {(uint16_t) r->port}, .port_count = 1};
        return cri_stream_server_offer(parts->streams, request, ret);
}

static void handle_forward(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__forward_request__descriptor, bytes, length);
        Nodens__V1__ForwardAnswer answer = NODENS__V1__FORWARD_ANSWER__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = offer_forward(userdata, (const Nodens__V1__ForwardRequest *) request, &url);
        answer.url = url;
        cri_response_finish(call, error, &answer.base);
}

/* ---- usage ---- */

struct pending_usage {
        struct cri_pending_call base;
        struct cri_stats_operation *request;
};

static Nodens__V1__Usage *response_usage(struct nd_arena *memory, const struct cri_usage *usage) {
        Nodens__V1__Usage *m = cri_response_new(memory, Nodens__V1__Usage, nodens__v1__usage__descriptor);

        m->at = usage->at;
        m->has_cpu = usage->has_cpu;
        m->cpu = usage->cpu;
        m->has_memory = usage->has_memory;
        m->working_set = usage->working_set;
        m->memory_limit = usage->memory_limit == UINT64_MAX ? 0 : usage->memory_limit;
        m->has_pids = usage->has_pids;
        m->pids = usage->pids;
        return m;
}

static Nodens__V1__ContainerUsage *response_container(struct nd_arena *memory, const struct cri_container_stats *stats) {
        Nodens__V1__ContainerUsage *m =
                cri_response_new(memory, Nodens__V1__ContainerUsage, nodens__v1__container_usage__descriptor);

        m->id = nd_arena_strdup(memory, stats->id);
        m->usage = response_usage(memory, &stats->usage);
        m->has_disk = stats->layer.at != 0;
        m->disk = stats->layer.bytes;
        return m;
}

static Nodens__V1__PodUsage *response_pod(struct nd_arena *memory, const struct cri_sandbox *sandbox,
                                          const struct cri_sandbox_stats *stats, const struct nd_map *containers) {
        Nodens__V1__PodUsage *m = cri_response_new(memory, Nodens__V1__PodUsage, nodens__v1__pod_usage__descriptor);

        m->id = nd_arena_strdup(memory, stats->id);
        m->usage = response_usage(memory, &stats->usage);
        m->has_network = stats->network.at != 0 && stats->network.count > 0;
        for (size_t i = 0; i < stats->network.count; i++) {
                m->received += stats->network.interfaces[i].received;
                m->sent += stats->network.interfaces[i].sent;
        }
        m->containers = nd_arena_alloc(memory, sandbox->containers.count, sizeof *m->containers);
        nd_vector_each (container, &sandbox->containers) {
                const struct cri_container_stats *found = nd_map_get(containers, (*container)->id);

                if (found && cri_container_is_shown(*container))
                        m->containers[m->n_containers++] = response_container(memory, found);
        }
        return m;
}

static void on_usage(const struct cri_stats_result *stats, void *userdata) {
        nd_autofree struct pending_usage *pending = userdata;
        Nodens__V1__UsageAnswer answer = NODENS__V1__USAGE_ANSWER__INIT;
        nd_cleanup(nd_map_done) struct nd_map containers = {};
        nd_autoarena struct nd_arena memory = {};

        cri_pending_call_detach(&pending->base);
        nd_vector_each (one, &stats->containers) {
                (void) nd_map_put(&containers, one->id, (void *) one);
        }
        answer.pods = nd_arena_alloc(&memory, stats->sandboxes.count, sizeof *answer.pods);
        nd_vector_each (one, &stats->sandboxes) {
                const struct cri_sandbox *sandbox = nd_map_get(&pending->base.parts->pods.sandboxes, one->id);

                if (sandbox && cri_sandbox_is_shown(sandbox))
                        answer.pods[answer.n_pods++] = response_pod(&memory, sandbox, one, &containers);
        }
        cri_response_with(pending->base.call, &answer.base);
}

static void cancel_usage(struct cri_pending_call *pending) {
        cri_stats_query_cancel(((struct pending_usage *) pending)->request);
}

static void ask_of_pods(const struct cri_parts *parts, struct cri_stats_query *question) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&parts->pods.sandboxes, &at));) {
                const struct cri_sandbox *sandbox = slot->value;

                if (sandbox->state != SANDBOX_READY)
                        continue;
                nd_strings_add(&question->sandboxes, sandbox->id);
                nd_vector_each (container, &sandbox->containers) {
                        if (cri_container_is_shown(*container) && (*container)->state == CONTAINER_RUNNING)
                                nd_strings_add(&question->containers, (*container)->id);
                }
        }
}

static void handle_usage(struct nd_grpc_call *call, [[maybe_unused]] const char *bytes, [[maybe_unused]] size_t length,
                         void *userdata) {
        nd_cleanup(cri_stats_query_done) struct cri_stats_query question = {
                .parts = USAGE_CPU | USAGE_MEMORY | USAGE_PIDS, .layers = true, .networks = true};
        struct pending_usage *pending = cri_pending_call_new(struct pending_usage, call, userdata, cancel_usage);

        ask_of_pods(pending->base.parts, &question);
        cri_stats_query_start(pending->base.parts->stats, &question, on_usage, pending, &pending->request);
        cri_pending_call_attach(&pending->base);
}

/* ---- remove ---- */

struct removal {
        struct nd_grpc_call *call; /* nullptr after the caller has disconnected */
        struct cri_parts *parts;
        char sandbox[POD_ID + 1]; /* its ID: another client may remove it while we wait */
        size_t stops;             /* number of pending stops */
        struct nd_error *error;   /* of the first stop that failed */
};

/* Finishes the call, takes the error, frees the removal. */
static void removal_finish(struct removal *removal, struct nd_error *error) {
        Nodens__V1__RemoveAnswer answer = NODENS__V1__REMOVE_ANSWER__INIT;
        struct nd_grpc_call *call = removal->call;

        free(removal);
        if (call)
                nd_grpc_call_on_cancel(call, nullptr, nullptr);
        if (call && !error)
                cri_response_with(call, &answer.base);
        else if (call)
                nd_grpc_call_finish(call, error);
        else
                nd_error_free(error);
}

static void on_removal_cancel(void *userdata) {
        struct removal *removal = userdata;

        nd_grpc_call_finish(nd_take_ptr(removal->call), nullptr);
}

static void on_removed(struct nd_error *error, [[maybe_unused]] struct cri_sandbox *sandbox, void *userdata) {
        removal_finish(userdata, error);
}

/* All containers have stopped, or failed to stop. */
static void removal_proceed(struct removal *removal) {
        struct cri_sandbox *sandbox = nd_map_get(&removal->parts->pods.sandboxes, removal->sandbox);

        if (removal->error || !sandbox)
                removal_finish(removal, nd_take_ptr(removal->error));
        else
                cri_sandbox_remove(removal->parts, sandbox, on_removed, removal, nullptr);
}

static void on_stopped(struct nd_error *error, [[maybe_unused]] struct cri_container *container, void *userdata) {
        struct removal *removal = userdata;

        /* A container that was removed before its turn counts as stopped. */
        if (nd_error_code(error) == ND_NOT_FOUND || removal->error)
                nd_error_free(error);
        else
                removal->error = error;
        if (--removal->stops == 0)
                removal_proceed(removal);
}

static void log_removal(const struct cri_sandbox *sandbox) {
        const struct cri_sandbox_request *request = &sandbox->request;
        nd_autofree char *message = nd_format("pod %s/%s is being removed by an operator", request->namespace, request->name);

        nd_log(ND_LOG_INFO, message, nd_field("pod", request->name), nd_field("namespace", request->namespace),
               nd_field("uid", request->uid), nd_field("sandbox", sandbox->id));
}

static void handle_remove(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &nodens__v1__remove_request__descriptor, bytes, length);
        const Nodens__V1__RemoveRequest *r = (const Nodens__V1__RemoveRequest *) request;
        struct cri_parts *parts = userdata;
        struct cri_sandbox *sandbox = nullptr;
        struct removal *removal;
        struct nd_error *error;

        if (!request)
                return;
        error = cri_pod_table_find_sandbox(&parts->pods, r->sandbox, &sandbox);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        log_removal(sandbox);
        removal = nd_new(struct removal);
        removal->call = call;
        removal->parts = parts;
        memcpy(removal->sandbox, sandbox->id, sizeof removal->sandbox);
        nd_grpc_call_on_cancel(call, on_removal_cancel, removal);
        nd_vector_each (container, &sandbox->containers) {
                removal->stops += (*container)->state == CONTAINER_RUNNING && !(*container)->internal;
        }
        if (removal->stops == 0) {
                removal_proceed(removal);
                return;
        }
        nd_vector_each (container, &sandbox->containers) {
                if ((*container)->state == CONTAINER_RUNNING && !(*container)->internal)
                        cri_container_stop(parts, *container, r->grace, on_stopped, removal, nullptr);
        }
}

const struct nd_grpc_method cri_rpc_operator_methods[] = {
        {"/nodens.v1.Node/Exec", handle_exec},       {"/nodens.v1.Node/Attach", handle_attach},
        {"/nodens.v1.Node/Forward", handle_forward}, {"/nodens.v1.Node/Usage", handle_usage},
        {"/nodens.v1.Node/Remove", handle_remove},   {},
};
