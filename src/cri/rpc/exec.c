/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - runtime.v1.RuntimeService: commands in containers. If the caller disconnects, the
 * command is killed. */
#include <cri.pb-c.h>

#include "base/clock.h"
#include "cri/core/parts.h"
#include "cri/oci-runtime/exec.h"
#include "cri/rpc/methods.h"
#include "cri/rpc/pending-call.h"
#include "cri/rpc/response.h"
#include "cri/stream/server.h"

struct pending {
        struct cri_pending_call base;
        struct cri_exec *exec;
};

static void cancel(struct cri_pending_call *pending) {
        cri_exec_cancel(((struct pending *) pending)->exec);
}

static void on_done(struct nd_error *error, struct cri_exec_result *result, void *userdata) {
        Runtime__V1__ExecSyncResponse answer = RUNTIME__V1__EXEC_SYNC_RESPONSE__INIT;
        struct nd_grpc_call *call = cri_pending_call_end(userdata);

        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        answer.exit_code = result->code;
        answer.stdout = (ProtobufCBinaryData) {.data = (uint8_t *) result->output, .len = result->output_length};
        answer.stderr = (ProtobufCBinaryData) {.data = (uint8_t *) result->errors, .len = result->errors_length};
        cri_response_with(call, &answer.base);
}

static struct nd_error *start(struct cri_parts *parts, const Runtime__V1__ExecSyncRequest *r, struct pending *pending) {
        constexpr int64_t longest_s = 10 * 365 * 24 * 3600LL;
        const struct nd_strings command = {.items = r->cmd, .count = r->n_cmd};
        struct cri_container *container = nullptr;

        nd_try(cri_pod_table_find_container(&parts->pods, r->container_id, &container));
        if (r->n_cmd == 0)
                return nd_error_new(ND_INVALID, 0, "no command given for container '%s'", container->id);
        if (r->timeout < 0 || r->timeout > longest_s)
                return nd_error_new(ND_INVALID, 0, "invalid timeout of %lld s", (long long) r->timeout);
        return cri_exec_start(parts->loop, &parts->config,
                              &(struct cri_exec_plan) {.container = container,
                                                       .command = &command,
                                                       .timeout_us = (uint64_t) r->timeout * ND_SECOND_US},
                              on_done, pending, &pending->exec);
}

static void handle_exec_sync(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__exec_sync_request__descriptor, bytes, length);
        struct nd_error *error;
        struct pending *pending;

        if (!request)
                return;
        pending = cri_pending_call_new(struct pending, call, userdata, cancel);
        error = start(userdata, (const Runtime__V1__ExecSyncRequest *) request, pending);
        if (error) {
                free(pending);
                nd_grpc_call_finish(call, error);
                return;
        }
        cri_pending_call_attach(&pending->base);
}

/* ---- with streams ---- */

/* The texts are those of the kubelet's own library. */
static struct nd_error *check_streams(const struct cri_stream_request *request) {
        if (request->terminal && request->errors)
                return nd_error_new(ND_INVALID, 0, "tty and stderr cannot both be true");
        if (!request->input && !request->output && !request->errors)
                return nd_error_new(ND_INVALID, 0, "one of stdin, stdout, or stderr must be set");
        return nullptr;
}

/* Offers a copy of the request, whose container may be an abbreviated ID. */
static struct nd_error *offer_streams(struct cri_parts *parts, const struct cri_stream_request *like, char **ret) {
        struct cri_container *container = nullptr;
        struct cri_stream_request *request;

        if (*like->container == '\0')
                return nd_error_new(ND_INVALID, 0, "missing required container_id");
        nd_try(check_streams(like));
        if (like->kind == STREAM_EXEC && like->command.count == 0)
                return nd_error_new(ND_INVALID, 0, "no command given for container '%s'", like->container);
        nd_try(cri_pod_table_find_running(&parts->pods, like->container, &container));
        request = nd_new(struct cri_stream_request);
        *request = *like;
        request->container = nd_strdup(container->id);
        request->command = (struct nd_strings) {};
        nd_vector_each (argument, &like->command)
                nd_strings_add(&request->command, *argument);
        return cri_stream_server_offer(parts->streams, request, ret);
}

static struct nd_error *offer_exec(struct cri_parts *parts, const Runtime__V1__ExecRequest *r, char **ret) {
        const struct cri_stream_request like = {.kind = STREAM_EXEC,
                                                .container = r->container_id,
                                                .command = {.items = r->cmd, .count = r->n_cmd},
                                                .terminal = r->tty,
                                                .input = r->stdin,
                                                .output = r->stdout,
                                                .errors = r->stderr};

        return offer_streams(parts, &like, ret);
}

static void handle_exec(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__exec_request__descriptor, bytes, length);
        Runtime__V1__ExecResponse answer = RUNTIME__V1__EXEC_RESPONSE__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = offer_exec(userdata, (const Runtime__V1__ExecRequest *) request, &url);
        answer.url = url;
        cri_response_finish(call, error, &answer.base);
}

static struct nd_error *offer_attach(struct cri_parts *parts, const Runtime__V1__AttachRequest *r, char **ret) {
        const struct cri_stream_request like = {.kind = STREAM_ATTACH,
                                                .container = r->container_id,
                                                .terminal = r->tty,
                                                .input = r->stdin,
                                                .output = r->stdout,
                                                .errors = r->stderr};

        return offer_streams(parts, &like, ret);
}

static void handle_attach(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__attach_request__descriptor, bytes, length);
        Runtime__V1__AttachResponse answer = RUNTIME__V1__ATTACH_RESPONSE__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = offer_attach(userdata, (const Runtime__V1__AttachRequest *) request, &url);
        answer.url = url;
        cri_response_finish(call, error, &answer.base);
}

static struct nd_error *offer_forward(struct cri_parts *parts, const Runtime__V1__PortForwardRequest *r, char **ret) {
        struct cri_sandbox *sandbox = nullptr;
        struct cri_stream_request *request;

        if (*r->pod_sandbox_id == '\0')
                return nd_error_new(ND_INVALID, 0, "missing required pod_sandbox_id");
        if (r->n_port > STREAM_PORTS)
                return nd_error_new(ND_INVALID, 0, "%zu ports in one request; at most %d are allowed", r->n_port,
                                    STREAM_PORTS);
        for (size_t i = 0; i < r->n_port; i++)
                if (r->port[i] < 1 || r->port[i] > UINT16_MAX)
                        return nd_error_new(ND_INVALID, 0, "invalid port %d", r->port[i]);
        nd_try(cri_pod_table_find_sandbox(&parts->pods, r->pod_sandbox_id, &sandbox));
        if (sandbox->state != SANDBOX_READY)
                return nd_error_new(ND_PRECONDITION, 0, "sandbox %s has been stopped", sandbox->id);
        request = nd_new(struct cri_stream_request);
        *request = (struct cri_stream_request) {.kind = STREAM_FORWARD, .container = nd_strdup(sandbox->id)};
        for (size_t i = 0; i < r->n_port; i++)
                request->ports[request->port_count++] = (uint16_t) r->port[i];
        return cri_stream_server_offer(parts->streams, request, ret);
}

static void handle_forward(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        cri_response_autofree ProtobufCMessage *request =
                cri_response_decode(call, &runtime__v1__port_forward_request__descriptor, bytes, length);
        Runtime__V1__PortForwardResponse answer = RUNTIME__V1__PORT_FORWARD_RESPONSE__INIT;
        nd_autofree char *url = nullptr;
        struct nd_error *error;

        if (!request)
                return;
        error = offer_forward(userdata, (const Runtime__V1__PortForwardRequest *) request, &url);
        answer.url = url;
        cri_response_finish(call, error, &answer.base);
}

const struct nd_grpc_method cri_rpc_exec_methods[] = {
        {"/runtime.v1.RuntimeService/ExecSync", handle_exec_sync},
        {"/runtime.v1.RuntimeService/Exec", handle_exec},
        {"/runtime.v1.RuntimeService/Attach", handle_attach},
        {"/runtime.v1.RuntimeService/PortForward", handle_forward},
        {},
};
