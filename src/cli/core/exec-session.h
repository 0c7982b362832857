/* SPDX-License-Identifier: Apache-2.0 */
/* exec-session.h - connects our standard streams to a command in a container, by the URL that nodens-cri gave */
#pragma once

#include "base/error.h"

struct cli_exec_session_settings {
        const char *url; /* http://ADDRESS:PORT/PATH */
        bool input;      /* our standard input is the command's */
        bool terminal;   /* the command has a terminal: ours, if we have one, passes every key on and tells its size */
};

/* Until the command has ended; its exit code. An error: it could not be run, or the connection was lost. */
[[nodiscard]] struct nd_error *cli_exec_session_run(const struct cli_exec_session_settings *settings, int *ret_code);
