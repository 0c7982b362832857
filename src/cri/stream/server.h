/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - where clients of Exec, Attach and PortForward come with their token: on the loopback only, at a port that the kernel chooses */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct cri_config;
struct cri_pins;
struct cri_pod_table;
struct cri_stream_server;

/* Configuration, pods and pins must outlive it. */
[[nodiscard]] struct nd_error *cri_stream_server_new(sd_event *loop, const struct cri_config *config,
                                                     const struct cri_pod_table *pods, const struct cri_pins *pins,
                                                     struct cri_stream_server **ret);
void cri_stream_server_free(struct cri_stream_server *server); /* ends what goes over it */

/* The address at which a client finds what was asked for; the caller's to free. Takes the request. */
[[nodiscard]] struct nd_error *cri_stream_server_offer(struct cri_stream_server *server, struct cri_stream_request *request,
                                                       char **ret);

/* A pod has stopped: no connection into its network is to keep that alive. nullptr is fine. */
void cri_stream_server_leave(struct cri_stream_server *server, const char *sandbox);
