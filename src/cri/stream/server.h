/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - streaming server for clients of Exec, Attach and PortForward with a token: on loopback
 * only, at a port chosen by the kernel */
#pragma once

#include <systemd/sd-event.h>

#include "cri/stream/token.h"

struct cri_config;
struct cri_pins;
struct cri_pod_table;
struct cri_stream_server;

/* config, pods and pins must outlive it. */
[[nodiscard]] struct nd_error *cri_stream_server_new(sd_event *loop, const struct cri_config *config,
                                                     const struct cri_pod_table *pods, const struct cri_pins *pins,
                                                     struct cri_stream_server **ret);
void cri_stream_server_free(struct cri_stream_server *server); /* closes all connections */

/* Returns the URL for a request; the caller frees it. Takes the request. */
[[nodiscard]] struct nd_error *cri_stream_server_offer(struct cri_stream_server *server, struct cri_stream_request *request,
                                                       char **ret);

/* Closes the connections into a stopped pod's network, which would keep it alive. nullptr is
 * allowed. */
void cri_stream_server_leave(struct cri_stream_server *server, const char *sandbox);
