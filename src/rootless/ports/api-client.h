/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.h - asking a node's port controller, by its API */
#pragma once

#include "base/json.h"

/* One request, which waits for the controller of a node that has just been started. The body of the answer as JSON, nullptr when it has none; an answer
 * that is an error becomes one. */
[[nodiscard]] struct nd_error *rootless_api_request(const char *name, const char *method, const char *path, const char *body,
                                                    yyjson_doc **ret);

/* Publishes one port, and ports between commas. */
[[nodiscard]] struct nd_error *rootless_api_publish(const char *name, const char *text, uint64_t *ret_id);
[[nodiscard]] struct nd_error *rootless_api_publish_list(const char *name, const char *list);
