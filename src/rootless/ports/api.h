/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - RootlessKit's REST API, version 1.1.2: HTTP on a unix socket, as bytes
 *
 *      GET    /v1/info             version, the node's init process and network
 *      GET    /v1/ports            published ports; counters are our addition
 *      POST   /v1/ports            publishes a port; returns 201 and the port with its ID
 *      DELETE /v1/ports/ID
 *
 * and, not part of RootlessKit's,
 *
 *      PUT    /v1/owners/NAME/ports    makes the ports of an owner equal to a list
 *              {"ports": [{"spec": {...}, "object": "Service default/web"}, ...]}
 *              "filter" of a UDP port says which datagrams are accepted (vxlan-filter.h)
 *              returns {"lowestPort": 1024, "ports": [...]}: the lowest port that can be
 *              published, and the owner's ports, each with an error if it is not published
 *
 * An error is {"message": "..."}. A connection carries one request. Nothing here does I/O: the
 * backend's functions do what the request asks for. */
#pragma once

#include "rootless/ports/ports.h"

enum {
        API_BODY_BYTES = 2 * 1024 * 1024,               /* PORTS_OWNED_MAX ports */
        API_REQUEST_BYTES = API_BODY_BYTES + 64 * 1024, /* limit of a request including its head */
        API_RESPONSE_BYTES = 8 * 1024 * 1024,
};

struct rootless_api_backend {
        void *userdata;
        void (*info)(void *userdata, struct nd_json_out *out); /* adds fields to an open object */
        const struct rootless_ports *(*list)(void *userdata, bool *ret_kept);
        struct nd_error *(*add)(void *userdata, const struct rootless_port_spec *spec, const struct rootless_port **ret);
        struct nd_error *(*remove)(void *userdata, uint64_t id);
        /* Each wanted port has a spec and an object. */
        struct nd_error *(*replace)(void *userdata, const char *owner, struct rootless_ports *wanted);
        uint16_t (*lowest)(void *userdata);
};

/* Answers the bytes received so far; false while the request is incomplete. */
[[nodiscard]] bool rootless_api_respond(const struct rootless_api_backend *backend, const char *bytes, size_t length,
                                        struct nd_text *ret);
