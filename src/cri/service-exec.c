/* SPDX-License-Identifier: Apache-2.0 */
/* service-exec.c - runtime.v1.RuntimeService: commands in containers. A caller that is gone takes the command with it. */
#include <cri.pb-c.h>

#include "base/clock.h"
#include "cri/answer.h"
#include "cri/daemon.h"
#include "cri/exec.h"
#include "cri/service.h"

struct ticket {
        struct nd_grpc_call *call;
        struct exec *exec;
};

static void on_cancel(void *userdata) {
        struct ticket *ticket = userdata;

        exec_cancel(ticket->exec);
        nd_grpc_call_finish(ticket->call, nullptr);
        free(ticket);
}

static void on_done(struct nd_error *error, struct exec_result *result, void *userdata) {
        Runtime__V1__ExecSyncResponse answer = RUNTIME__V1__EXEC_SYNC_RESPONSE__INIT;
        struct ticket *ticket = userdata;
        struct nd_grpc_call *call = ticket->call;

        free(ticket);
        nd_grpc_call_on_cancel(call, nullptr, nullptr);
        if (error) {
                nd_grpc_call_finish(call, error);
                return;
        }
        answer.exit_code = result->code;
        answer.stdout = (ProtobufCBinaryData) {.data = (uint8_t *) result->output, .len = result->output_length};
        answer.stderr = (ProtobufCBinaryData) {.data = (uint8_t *) result->errors, .len = result->errors_length};
        answer_with(call, &answer.base);
}

static struct nd_error *start(struct daemon *daemon, const Runtime__V1__ExecSyncRequest *r, struct ticket *ticket) {
        constexpr int64_t longest_s = 10 * 365 * 24 * 3600LL;
        const nd_strings command = {.items = r->cmd, .count = r->n_cmd};
        struct container *container = nullptr;

        nd_try(pods_find_container(&daemon->pods, r->container_id, &container));
        if (r->n_cmd == 0)
                return nd_error_new(ND_INVALID, 0, "no command was given");
        if (r->timeout < 0 || r->timeout > longest_s)
                return nd_error_new(ND_INVALID, 0, "a timeout of %lld s", (long long) r->timeout);
        return exec_start(daemon, container, &command, (uint64_t) r->timeout * ND_SECOND_US, on_done, ticket, &ticket->exec);
}

static void handle_exec_sync(struct nd_grpc_call *call, const char *bytes, size_t length, void *userdata) {
        answer_autofree request = answer_decode(call, &runtime__v1__exec_sync_request__descriptor, bytes, length);
        struct nd_error *error;
        struct ticket *ticket;

        if (!request)
                return;
        ticket = nd_new(struct ticket);
        ticket->call = call;
        error = start(userdata, (const Runtime__V1__ExecSyncRequest *) request, ticket);
        if (error) {
                free(ticket);
                nd_grpc_call_finish(call, error);
                return;
        }
        nd_grpc_call_on_cancel(call, on_cancel, ticket);
}

const struct nd_grpc_method service_exec_methods[] = {
        {"/runtime.v1.RuntimeService/ExecSync", handle_exec_sync},
        {},
};
