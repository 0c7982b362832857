/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - where clients of Exec, Attach and PortForward come with their token: on the loopback only, at a port that the kernel chooses */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct cri_config;
struct pins;
struct pods;
struct stream_server;

/* Configuration, pods and pins must outlive it. */
[[nodiscard]] struct nd_error *stream_server_new(sd_event *loop, const struct cri_config *config, const struct pods *pods,
                                                 const struct pins *pins, struct stream_server **ret);
void stream_server_free(struct stream_server *server); /* ends what goes over it */

/* The address at which a client finds what was asked for; the caller's to free. Takes the request. */
[[nodiscard]] struct nd_error *stream_server_offer(struct stream_server *server, struct stream_request *request, char **ret);

/* A pod has stopped: no connection into its network is to keep that alive. nullptr is fine. */
void stream_server_leave(struct stream_server *server, const char *sandbox);
