/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - RootlessKit's REST API, version 1.1.2: HTTP on a unix socket, as bytes
 *
 *      GET    /v1/info             version, the node's init process and network
 *      GET    /v1/ports            published ports; counters are our addition
 *      POST   /v1/ports            publishes a port; returns 201 and the port with its ID
 *      DELETE /v1/ports/ID
 *
 * An error is {"message": "..."}. A connection carries one request. Nothing here does I/O: the
 * backend's functions do what the request asks for. */
#pragma once

#include "rootless/ports/ports.h"

enum {
        API_BODY_BYTES = 64 * 1024,
        API_REQUEST_BYTES = 128 * 1024, /* limit of a request including its head */
        API_RESPONSE_BYTES = 4 * 1024 * 1024,
};

struct rootless_api_backend {
        void *userdata;
        void (*info)(void *userdata, struct nd_json_out *out); /* adds fields to an open object */
        const struct rootless_ports *(*list)(void *userdata, bool *ret_kept);
        struct nd_error *(*add)(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret);
        struct nd_error *(*remove)(void *userdata, uint64_t id);
};

/* Answers the bytes received so far; false while the request is incomplete. */
[[nodiscard]] bool rootless_api_respond(const struct rootless_api_backend *backend, const char *bytes, size_t length,
                                        struct nd_text *ret);
