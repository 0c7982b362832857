/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - the terminal that an OCI runtime hands over (--console-socket) */
#pragma once

/* Takes it from a connection of the runtime's: the master's descriptor, which does not block; or -errno. */
[[nodiscard]] int nd_terminal_receive(int connection);
