/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - one request after the other to an API server, for commands that wait for the reply */
#pragma once

#include "net/api-client.h"

struct rootless_plane_client {
        sd_event *loop;
        struct nd_api *api;
};
void rootless_plane_client_done(struct rootless_plane_client *client);

[[nodiscard]] struct nd_error *rootless_plane_client_open(const struct nd_kubeconfig *config,
                                                          struct rootless_plane_client *ret);

struct rootless_plane_call {
        const char *method; /* nullptr: GET */
        const char *path;
        const char *content_type; /* nullptr: application/json */
        const char *body;
        size_t ceiling; /* of the response; 0: 1 MiB */
};

/* Returns the body of the response. An error has the HTTP status as errno if there was a response
 * that is not 2xx; redirects are such responses. */
[[nodiscard]] struct nd_error *rootless_plane_send(struct rootless_plane_client *client,
                                                   const struct rootless_plane_call *call, char **ret_body);
