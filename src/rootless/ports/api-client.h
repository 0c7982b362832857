/* SPDX-License-Identifier: Apache-2.0 */
/* api-client.h - asking a node's port controller, by its API */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Publishes one port, and ports between commas; waits for the controller of a node that has just been started. */
[[nodiscard]] struct nd_error *nd_publish(const char *name, const char *text, uint64_t *ret_id);
[[nodiscard]] struct nd_error *nd_publish_list(const char *name, const char *list);
