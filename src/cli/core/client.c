/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/client.h"

#include <nodens.pb-c.h>
#include <string.h>

#include "base/clock.h"
#include "net/grpc-client.h"
#include "net/protobuf.h"

static constexpr uint64_t call_timeout_us = 120 * ND_SECOND_US;

const char *cli_client_socket_path(const char *socket) {
        static const char scheme[] = "unix://";

        if (!socket)
                return CLIENT_SOCKET;
        return nd_has_prefix(socket, scheme) ? socket + strlen(scheme) : socket;
}

struct nd_error *cli_client_explain(struct nd_error *error) {
        if (nd_error_errno(error) == ENOENT || nd_error_errno(error) == ECONNREFUSED)
                return nd_error_wrap(
                        error,
                        "cannot connect to nodens-cri (is it running? systemctl status nodens-cri; --socket sets another path)");
        if (nd_error_code(error) == ND_UNIMPLEMENTED)
                return nd_error_wrap(error,
                                     "protocol mismatch: nodens-cri is older than this client (restart it after an upgrade)");
        if (nd_error_errno(error) == EACCES)
                return nd_error_wrap(error, "only root may connect to nodens-cri");
        return error;
}

struct nd_error *cli_client_call_within(const char *socket, const char *path, const ProtobufCMessage *request,
                                        const ProtobufCMessageDescriptor *answer_type, uint64_t timeout_us,
                                        ProtobufCMessage **ret) {
        nd_autofree char *answer = nullptr;
        nd_autotext struct nd_text bytes = {};
        size_t length = 0;

        nd_protobuf_pack(request, &bytes);
        nd_try(cli_client_explain(nd_grpc_call_once(cli_client_socket_path(socket), path, nd_text_get(&bytes), bytes.length,
                                                    timeout_us, &answer, &length)));
        return nd_protobuf_unpack(answer_type, answer, length, ret);
}

struct nd_error *cli_client_call(const char *socket, const char *path, const ProtobufCMessage *request,
                                 const ProtobufCMessageDescriptor *answer_type, ProtobufCMessage **ret) {
        return cli_client_call_within(socket, path, request, answer_type, call_timeout_us, ret);
}

struct nd_error *cli_client_pods(const char *socket, ProtobufCMessage **ret) {
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;

        return cli_client_call(socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor, ret);
}

struct following {
        sd_event *loop;
        const ProtobufCMessageDescriptor *type;
        void (*each)(const ProtobufCMessage *answer, void *userdata);
        void *userdata;
        struct nd_error *error;
};

static void on_message(const char *bytes, size_t length, void *userdata) {
        struct following *f = userdata;
        ProtobufCMessage *answer = nullptr;
        struct nd_error *error;

        if (f->error)
                return;
        error = nd_protobuf_unpack(f->type, bytes, length, &answer);
        if (error) {
                f->error = error;
                return;
        }
        f->each(answer, f->userdata);
        nd_protobuf_free(answer);
}

static void on_end(struct nd_error *error, void *userdata) {
        struct following *f = userdata;

        if (f->error)
                nd_error_free(error);
        else
                f->error = error;
        (void) sd_event_exit(f->loop, 0);
}

static void loop_done(sd_event **loop) {
        sd_event_unref(*loop);
}

struct nd_error *cli_client_stream(const char *socket, const char *path, const ProtobufCMessage *request,
                                   const ProtobufCMessageDescriptor *answer_type,
                                   void (*each)(const ProtobufCMessage *answer, void *userdata), void *userdata) {
        static const struct nd_grpc_answer answer = {.message = on_message, .end = on_end};
        nd_cleanup(loop_done) sd_event *loop = nullptr;
        nd_cleanup(nd_grpc_client_done) struct nd_grpc_client *client = nullptr;
        struct following f = {.type = answer_type, .each = each, .userdata = userdata};
        nd_autotext struct nd_text bytes = {};
        int32_t call;
        int r = sd_event_new(&loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        f.loop = loop;
        nd_protobuf_pack(request, &bytes);
        nd_try(cli_client_explain(nd_grpc_client_connect(loop, cli_client_socket_path(socket), &client)));
        nd_try(nd_grpc_client_call(client, path, nd_text_get(&bytes), bytes.length, 0, &answer, &f, &call));
        r = sd_event_loop(loop);
        if (r < 0 && !f.error)
                return nd_error_new(ND_INTERNAL, -r, "wait for %s", path);
        return f.error;
}
