/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.h - client of a node's port controller API */
#pragma once

#include "base/json.h"

/* Sends one request; waits for the controller of a node that was just started. Returns the body of
 * the reply as JSON, nullptr when it is empty. An error reply becomes an error. */
[[nodiscard]] struct nd_error *rootless_api_request(const char *name, const char *method, const char *path, const char *body,
                                                    yyjson_doc **ret);

/* The bytes of a request, and the JSON in the bytes of a reply, as above. */
void rootless_api_format(struct nd_text *request, const char *method, const char *path, const char *body);
[[nodiscard]] struct nd_error *rootless_api_parse(const char *name, const char *answer, yyjson_doc **ret);

/* Publishes one port, or a comma-separated list. */
[[nodiscard]] struct nd_error *rootless_api_publish(const char *name, const char *text, uint64_t *ret_id);
/* Makes this port the only one of an owner (ports.h): it ends with the node. */
[[nodiscard]] struct nd_error *rootless_api_publish_owned(const char *name, const char *owner, const char *object,
                                                          const char *text);
[[nodiscard]] struct nd_error *rootless_api_publish_list(const char *name, const char *list);
/* Checks the syntax of such a list. */
[[nodiscard]] struct nd_error *rootless_api_check_list(const char *list);
