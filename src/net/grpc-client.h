/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-client.h - a gRPC client on a unix socket and sd-event: unary calls and server streams, many at once */
#pragma once

#include <systemd/sd-event.h>

#include "net/grpc.h"

struct nd_grpc_client;

/* What a call tells. Both run from the loop. */
struct nd_grpc_answer {
        void (*message)(const char *bytes, size_t length, void *userdata); /* once for a unary call */
        void (*end)(struct nd_error *error, void *userdata); /* last; nullptr = OK. The error is the callee's to free */
};

/* Connects. The error says what to do when nobody listens. */
[[nodiscard]] struct nd_error *nd_grpc_client_connect(sd_event *loop, const char *socket_path, struct nd_grpc_client **ret);
void nd_grpc_client_free(struct nd_grpc_client *client); /* calls under way end with ND_CANCELLED */
static inline void nd_grpc_client_done(struct nd_grpc_client **client) {
        nd_grpc_client_free(*client);
        *client = nullptr;
}

/* Starts a call. timeout_us 0 = none. Returns its number. */
[[nodiscard]] struct nd_error *nd_grpc_client_call(struct nd_grpc_client *client, const char *path, const char *request,
                                                   size_t length, uint64_t timeout_us, const struct nd_grpc_answer *answer,
                                                   void *userdata, int32_t *ret_call);
void nd_grpc_client_cancel(struct nd_grpc_client *client, int32_t call);

/* For programs that have nothing else to do: one unary call on a loop of its own. Free *ret. */
[[nodiscard]] struct nd_error *nd_grpc_call_once(const char *socket_path, const char *path, const char *request, size_t length,
                                                 uint64_t timeout_us, char **ret, size_t *ret_length);
