/* SPDX-License-Identifier: Apache-2.0 */
/* takeover.h - continues a volume of running processes, after an upgrade of this program
 *
 * The processes of the volume are stopped, as they are; the caller gets a copy of each descriptor,
 * under its number, and maps the state. Then it kills them and does what a keeper does after the
 * death of a server. Until it kills them they can be continued.
 *
 * Which processes share the volume is asked of the kernel. What is in the state counts only after
 * the caller has confined itself: it was written by processes that serve a pod. */
#pragma once

#include "bridge/state.h"

enum {
        BRIDGE_TAKEOVER_MOST = 8, /* processes: three, and some that end */
};

struct bridge_takeover {
        pid_t pids[BRIDGE_TAKEOVER_MOST];
        int pidfds[BRIDGE_TAKEOVER_MOST];
        size_t count;
};

/* @pid: one of the processes. The caller has no descriptors above standard error. After an error
 * the processes go on. */
[[nodiscard]] struct nd_error *bridge_takeover_begin(pid_t pid, struct bridge_state *ret_state, struct bridge_takeover *ret);

/* SIGKILL before the caller works on the state, or SIGCONT if it does not. */
void bridge_takeover_end(struct bridge_takeover *takeover, int signal);
