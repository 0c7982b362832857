/* SPDX-License-Identifier: Apache-2.0 */
/* keepers.h - three processes, of which any may be killed
 *
 * They share the table of file descriptors and the state. The server works on requests. The keeper
 * waits for the death of the server and starts another; the spare waits for the death of the keeper
 * and takes its place. Both have one thread and do nothing else, so a process that is started from
 * them begins with a clean copy of their memory.
 *
 * The kernel stores the pidfd of a new process in the state before the process runs. So at each
 * instant the state has the right ones, there is one keeper, and a new server starts only when the
 * earlier one is dead with all its threads. */
#pragma once

#include "bridge/state.h"

/* Makes the calling process the keeper. Returns when the filesystem is unmounted. */
void bridge_keepers_run(struct bridge_state *state);
