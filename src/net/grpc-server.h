/* SPDX-License-Identifier: Apache-2.0 */
/* grpc-server.h - a gRPC server on unix sockets and sd-event
 *
 * Methods are a table; a handler gets the bytes of the request and answers through the call, at
 * once or later. Only root and the user that this process runs as may connect. */
#pragma once

#include <systemd/sd-event.h>

#include "net/grpc-session.h"

struct nd_grpc_method {
        const char *path; /* "/runtime.v1.ImageService/ListImages"; nullptr ends a table */
        void (*handle)(struct nd_grpc_call *call, const char *request, size_t length, void *userdata);
};

struct nd_grpc_server_settings {
        /* Array of tables; ends with nullptr; must outlive the server. */
        const struct nd_grpc_method *const *tables;
        void *userdata; /* for the handlers */
        /* Called after every call, for logs and metrics; may be nullptr. */
        void (*observe)(const struct nd_grpc_call *call, uint64_t duration_us, void *userdata);
        /* Disconnects a peer that reads nothing for this time while output is queued; 0 = 60 s. */
        uint64_t stalled_us;
};

struct nd_grpc_server;

[[nodiscard]] struct nd_error *nd_grpc_server_new(sd_event *loop, const struct nd_grpc_server_settings *settings,
                                                  struct nd_grpc_server **ret);
void nd_grpc_server_free(struct nd_grpc_server *server);

/* Serves a listening socket; takes the descriptor. */
[[nodiscard]] struct nd_error *nd_grpc_server_listen(struct nd_grpc_server *server, int fd);

/* Number of connections and calls, for tests and metrics. */
size_t nd_grpc_server_connections(const struct nd_grpc_server *server);
size_t nd_grpc_server_calls(const struct nd_grpc_server *server);

/* The table's entry for a path, or nullptr. */
const struct nd_grpc_method *nd_grpc_method_find(const struct nd_grpc_method *const *tables, const char *path);
