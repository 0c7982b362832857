/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.h - connects a local TCP connection to a port of a pod, through a URL from nodens-cri */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct cli_tunnel;

/* The connection has ended; the callee frees the error (nullptr = normally) and the tunnel. */
typedef void (*cli_tunnel_callback)(struct nd_error *error, void *userdata);

/* Takes the client's socket in any case. */
[[nodiscard]] struct nd_error *cli_tunnel_new(sd_event *loop, const char *url, int client, cli_tunnel_callback ended,
                                              void *userdata, struct cli_tunnel **ret);
void cli_tunnel_free(struct cli_tunnel *tunnel);
