/* SPDX-License-Identifier: Apache-2.0 */
/* api-server.h - serves a node's API (api.h) at api/api.sock in the node's directory */
#pragma once

#include <systemd/sd-event.h>

#include "rootless/core/node.h"
#include "rootless/ports/api.h"

struct rootless_api_server;

/* The caller holds the lock of the node's API. Connections end with the loop. */
[[nodiscard]] struct nd_error *rootless_api_server_new(sd_event *loop, const struct rootless_node *node,
                                                       const struct rootless_api_backend *backend,
                                                       struct rootless_api_server **ret);
void rootless_api_server_free(struct rootless_api_server *server);
