/* SPDX-License-Identifier: Apache-2.0 */
/* exec-status.h - exit status of a command in a container, from the last message of its streams */
#pragma once

#include "base/error.h"

enum { EXEC_STATUS_BYTES = 64 << 10 };

/* The message is a Status of Kubernetes' in JSON. An error when the command could not be run: its text is what the other side said. */
[[nodiscard]] struct nd_error *cli_exec_status_parse(const char *bytes, size_t length, int *ret_code);
