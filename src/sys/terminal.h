/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - receives the terminal from an OCI runtime (--console-socket) */
#pragma once

/* Receives it on a connection from the runtime: the master's descriptor, non-blocking; or
 * -errno. */
[[nodiscard]] int nd_terminal_receive(int connection);
