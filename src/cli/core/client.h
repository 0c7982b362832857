/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - gRPC calls to nodens-cri (or another CRI runtime) over its socket */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/error.h"

#define CLIENT_SOCKET "/run/nodens/cri.sock"

/* The option of every command that calls the daemon; type is its settings struct. */
#define CLIENT_SOCKET_OPTION(type)                                                                                            \
        {.name = "socket",                                                                                                    \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = offsetof(struct type, socket),                                                                             \
         .argument = "PATH",                                                                                                  \
         .values = ND_VALUES_FILE,                                                                                            \
         .help = "socket of nodens-cri (default " CLIENT_SOCKET ")"}

/* For programs with a loop of their own: the path of the socket, and an error of a call with advice
 * when the connection fails or the call is unknown. */
[[nodiscard]] const char *cli_client_socket_path(const char *socket);
[[nodiscard]] struct nd_error *cli_client_explain(struct nd_error *error);

/* Makes a unary call. Free the response with nd_protobuf_free(). socket nullptr = CLIENT_SOCKET;
 * "unix:///path" works, too. */
[[nodiscard]] struct nd_error *cli_client_call(const char *socket, const char *path, const ProtobufCMessage *request,
                                               const ProtobufCMessageDescriptor *answer_type, ProtobufCMessage **ret);

/* The same with a longer timeout than the two minutes of cli_client_call(). */
[[nodiscard]] struct nd_error *cli_client_call_within(const char *socket, const char *path, const ProtobufCMessage *request,
                                                      const ProtobufCMessageDescriptor *answer_type, uint64_t timeout_us,
                                                      ProtobufCMessage **ret);

/* Asks for all pods with their containers: a Nodens__V1__PodsAnswer. */
[[nodiscard]] struct nd_error *cli_client_pods(const char *socket, ProtobufCMessage **ret);

/* Makes a call with a stream of responses; each is passed to the function and freed after it. */
[[nodiscard]] struct nd_error *cli_client_stream(const char *socket, const char *path, const ProtobufCMessage *request,
                                                 const ProtobufCMessageDescriptor *answer_type,
                                                 void (*each)(const ProtobufCMessage *answer, void *userdata), void *userdata);
