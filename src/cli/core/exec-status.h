/* SPDX-License-Identifier: Apache-2.0 */
/* exec-status.h - exit status of a command in a container, from the last message of its streams */
#pragma once

#include "base/error.h"

enum {
        EXEC_STATUS_BYTES = 64 << 10,
        EXEC_STATUS_NOT_EXECUTABLE = 126, /* as shells have it */
        EXEC_STATUS_NOT_FOUND = 127,
};

/* The message is a Kubernetes Status in JSON. An error when the command could not be run, with the
 * server's message; *ret_code is then one of the two above if that is the cause, else unchanged. */
[[nodiscard]] struct nd_error *cli_exec_status_parse(const char *bytes, size_t length, int *ret_code);
