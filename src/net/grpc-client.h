/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-client.h - a gRPC client on a unix socket and sd-event: unary calls and server streams, many
 * at once */
#pragma once

#include <systemd/sd-event.h>

#include "net/grpc.h"

struct nd_grpc_client;

/* Callbacks of a call. Both run from the loop. */
struct nd_grpc_answer {
        /* Once for a unary call. */
        void (*message)(const char *bytes, size_t length, void *userdata);
        /* Last; nullptr = OK. The callee frees the error. */
        void (*end)(struct nd_error *error, void *userdata);
};

/* Connects. If connect() fails, the error says what to do. */
[[nodiscard]] struct nd_error *nd_grpc_client_connect(sd_event *loop, const char *socket_path, struct nd_grpc_client **ret);
void nd_grpc_client_free(struct nd_grpc_client *client); /* pending calls end with ND_CANCELLED */
static inline void nd_grpc_client_done(struct nd_grpc_client **client) {
        nd_grpc_client_free(*client);
        *client = nullptr;
}

/* Starts a call and returns its number. timeout_us 0 = no timeout. */
[[nodiscard]] struct nd_error *nd_grpc_client_call(struct nd_grpc_client *client, const char *path, const char *request,
                                                   size_t length, uint64_t timeout_us, const struct nd_grpc_answer *answer,
                                                   void *userdata, int32_t *ret_call);
void nd_grpc_client_cancel(struct nd_grpc_client *client, int32_t call);

/* For programs without a loop: one unary call, blocking. Free *ret. */
[[nodiscard]] struct nd_error *nd_grpc_call_once(const char *socket_path, const char *path, const char *request, size_t length,
                                                 uint64_t timeout_us, char **ret, size_t *ret_length);
