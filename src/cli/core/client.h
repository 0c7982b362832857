/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - gRPC calls to nodens-cri (or another CRI runtime) over its socket */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/error.h"

#define CLIENT_SOCKET "/run/nodens/cri.sock"

/* The option that every command has which asks the daemon; type is its struct of settings. */
#define CLIENT_SOCKET_OPTION(type)                                                                                            \
        {.name = "socket",                                                                                                    \
         .kind = ND_OPTION_TEXT,                                                                                              \
         .offset = offsetof(struct type, socket),                                                                             \
         .argument = "PATH",                                                                                                  \
         .values = ND_VALUES_FILE,                                                                                            \
         .help = "where nodens-cri listens (default " CLIENT_SOCKET ")"}

/* One unary call. Free the answer with nd_protobuf_free(). socket nullptr = CLIENT_SOCKET; "unix:///path" is taken too. */
[[nodiscard]] struct nd_error *cli_client_call(const char *socket, const char *path, const ProtobufCMessage *request,
                                               const ProtobufCMessageDescriptor *answer_type, ProtobufCMessage **ret);

/* The same for a call that may take longer than two minutes, which is what cli_client_call() waits for. */
[[nodiscard]] struct nd_error *cli_client_call_within(const char *socket, const char *path, const ProtobufCMessage *request,
                                                      const ProtobufCMessageDescriptor *answer_type, uint64_t timeout_us,
                                                      ProtobufCMessage **ret);

/* One call with a stream of answers; each is shown to the function and freed after it. */
[[nodiscard]] struct nd_error *cli_client_stream(const char *socket, const char *path, const ProtobufCMessage *request,
                                                 const ProtobufCMessageDescriptor *answer_type,
                                                 void (*each)(const ProtobufCMessage *answer, void *userdata), void *userdata);
