/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - what stands between the caller's terminal and a command in the node
 *
 * A terminal obeys ioctls of the processes that have it: TIOCSTI types into it, TIOCLINUX pastes on a virtual console. So no descriptor of the caller's
 * terminal gets into the node, whichever of the three streams it is, and neither does the caller's session. In its place the command gets a
 * pseudoterminal of the node's own, and this program copies between the two. Streams that are not a terminal are handed on as they are. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"
#include "rootless/core/node.h"
#include "rootless/node/session.h"

struct rootless_console;

/* Looks at our streams. root is the node's root directory, from where the pseudoterminal comes. ND_INVALID for a stream that would lead out of the node. */
[[nodiscard]] struct nd_error *rootless_console_new(int root, struct rootless_console **ret);
/* The same, of a node that runs. */
[[nodiscard]] struct nd_error *rootless_console_open(const struct rootless_node_record *record, struct rootless_console **ret);

/* Puts the terminal back and frees everything. */
void rootless_console_free(struct rootless_console *console);
static inline void rootless_console_done(struct rootless_console **console) {
        rootless_console_free(*console);
}

/* The part of a session that is the console's: streams, terminal, foreground, orders and reports. The descriptors stay ours. */
void rootless_console_session(const struct rootless_console *console, struct rootless_session *ret);

/* Blocks the signals that rootless_console_start() watches, so that none that comes before it is lost. Processes that are cloned from here on, and are not the
 * command, have to undo that. */
void rootless_console_block_signals(struct rootless_console *console);

/* The session runs: takes the terminal and copies until the loop ends. */
[[nodiscard]] struct nd_error *rootless_console_start(struct rootless_console *console, sd_event *loop);

/* The command has ended: writes what is left of its output. */
void rootless_console_drain(struct rootless_console *console);
