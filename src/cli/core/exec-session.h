/* SPDX-License-Identifier: Apache-2.0 */
/* exec-session.h - connects standard streams to a command in a container, or to the container
 * itself, through the URL from nodens-cri */
#pragma once

#include "base/error.h"

struct cli_exec_session_settings {
        const char *url; /* http://ADDRESS:PORT/PATH */
        bool input;      /* pass our standard input to the command */
        /* the command has a terminal: ours, if any, is raw and its size is forwarded */
        bool terminal;
        /* The streams are those of the container, which outlives the session; Ctrl-P Ctrl-Q on our
         * terminal ends it. */
        bool attach;
};

/* Runs until the command ends and returns its exit status; 0 at the end of a container's streams.
 * An error means that it could not be run or the connection was lost; *ret_code is then
 * unchanged, or as in exec-status.h. Returns nullptr for a command that does not start if its
 * standard error has the reason already. */
[[nodiscard]] struct nd_error *cli_exec_session_run(const struct cli_exec_session_settings *settings, int *ret_code);
