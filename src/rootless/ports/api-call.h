/* SPDX-License-Identifier: Apache-2.0 */
/* api-call.h - a request to a node's port controller, in the event loop */
#pragma once

#include <systemd/sd-event.h>

#include "base/json.h"
#include "rootless/core/node.h"

struct rootless_api_call;

/* Calls done() once, never before this function has returned, with an error or with the reply
 * (nullptr: an empty one), unless the call is cancelled. The node must outlive the call. */
struct rootless_api_call *rootless_api_call_start(
        sd_event *loop, const struct rootless_node *node, const char *method, const char *path, const char *body,
        void (*done)(const struct nd_error *error, yyjson_val *reply, void *userdata), void *userdata);
void rootless_api_call_cancel(struct rootless_api_call *call); /* nullptr is fine */
