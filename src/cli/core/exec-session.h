/* SPDX-License-Identifier: Apache-2.0 */
/* exec-session.h - connects standard streams to a command in a container, through the URL from
 * nodens-cri */
#pragma once

#include "base/error.h"

struct cli_exec_session_settings {
        const char *url; /* http://ADDRESS:PORT/PATH */
        bool input;      /* pass our standard input to the command */
        /* the command has a terminal: ours, if any, is raw and its size is forwarded */
        bool terminal;
};

/* Runs until the command ends and returns its exit status. An error means that it could not be run
 * or the connection was lost. */
[[nodiscard]] struct nd_error *cli_exec_session_run(const struct cli_exec_session_settings *settings, int *ret_code);
