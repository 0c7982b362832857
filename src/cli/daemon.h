/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - asking nodens-cri (or another CRI runtime) over its socket */
#pragma once

#include <protobuf-c/protobuf-c.h>

#include "base/error.h"

#define DAEMON_SOCKET "/run/nodens/cri.sock"

/* One unary call. Free the answer with nd_protobuf_free(). socket nullptr = DAEMON_SOCKET; "unix:///path" is taken too. */
[[nodiscard]] struct nd_error *daemon_ask(const char *socket, const char *path, const ProtobufCMessage *request,
                                          const ProtobufCMessageDescriptor *answer_type, ProtobufCMessage **ret);

/* One call with a stream of answers; each is shown to the function and freed after it. */
[[nodiscard]] struct nd_error *daemon_follow(const char *socket, const char *path, const ProtobufCMessage *request,
                                             const ProtobufCMessageDescriptor *answer_type,
                                             void (*each)(const ProtobufCMessage *answer, void *userdata), void *userdata);
