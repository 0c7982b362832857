/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - RootlessKit's REST API, version 1.1.2: HTTP on a unix socket, as bytes
 *
 *      GET    /v1/info             who serves, the node's process and network
 *      GET    /v1/ports            published ports, with counters, which RootlessKit does not have
 *      POST   /v1/ports            publishes one; 201 and the port with its id
 *      DELETE /v1/ports/ID
 *
 * An error is {"message": "..."}. A connection carries one request. Nothing here does I/O: what is asked for is done by the backend's functions. */
#pragma once

#include "rootless/ports/ports.h"

enum {
        API_BODY_BYTES = 64 * 1024,
        API_REQUEST_BYTES = 128 * 1024, /* most of a request, its head included */
        API_RESPONSE_BYTES = 4 * 1024 * 1024,
};

struct rootless_api_backend {
        void *userdata;
        void (*info)(void *userdata, struct nd_json_out *out); /* adds the fields of an open object */
        const struct rootless_ports *(*list)(void *userdata, bool *ret_kept);
        struct nd_error *(*add)(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret);
        struct nd_error *(*remove)(void *userdata, uint64_t id);
};

/* Answers what has come so far; false while the request is not whole. */
[[nodiscard]] bool rootless_api_respond(const struct rootless_api_backend *backend, const char *bytes, size_t length,
                                        struct nd_text *ret);
