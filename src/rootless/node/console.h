/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - separates the caller's terminal from a command in the node
 *
 * A process that has a terminal open can use its ioctls: TIOCSTI types into it, TIOCLINUX pastes on
 * a virtual console. So no descriptor of the caller's terminal gets into the node, on any of the
 * three streams, and neither does the caller's session. Instead the command gets a pseudoterminal
 * of the node, and this program copies between the two. Streams that are not terminals are passed
 * unchanged. */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"
#include "rootless/core/node.h"
#include "rootless/node/session.h"

struct rootless_console;

/* Examines our streams. The pseudoterminal comes from the node's root directory, root. ND_INVALID
 * for a stream that would give access to the host (a directory or a block device). */
[[nodiscard]] struct nd_error *rootless_console_new(int root, struct rootless_console **ret);
/* The same, for a running node. */
[[nodiscard]] struct nd_error *rootless_console_open(const struct rootless_node_record *record, struct rootless_console **ret);

/* Restores the terminal and frees the console. */
void rootless_console_free(struct rootless_console *console);
static inline void rootless_console_done(struct rootless_console **console) {
        rootless_console_free(*console);
}

/* Fills in the console's part of a session: streams, terminal, foreground, orders and reports. The
 * console keeps the descriptors. */
void rootless_console_session(const struct rootless_console *console, struct rootless_session *ret);

/* Blocks the signals that rootless_console_start() watches, so that no earlier signal is lost.
 * Processes cloned from here on inherit the mask and must restore it, except the command's. */
void rootless_console_block_signals(struct rootless_console *console);

/* To be called when the session runs: takes the terminal and copies until the loop ends. */
[[nodiscard]] struct nd_error *rootless_console_start(struct rootless_console *console, sd_event *loop);

/* To be called when the command has exited: writes the rest of its output. */
void rootless_console_drain(struct rootless_console *console);
