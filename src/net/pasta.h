/* SPDX-License-Identifier: Apache-2.0 */
/* pasta.h - versions of pasta (package passt) that stall streams out of a node
 *
 * pasta writes the data of a node into a socket of the host without waiting, and drops what does
 * not fit. Old versions announce a larger window to the node than the socket has room for, and
 * reply to a gap with two duplicate ACKs at most. The sender retransmits after three, and pasta has
 * no selective ones: it waits for its retransmission timer, 200 ms and more, again and again.
 *
 * Measured: 2025-05-03 stalls, 2026-07-28 does not, except to destinations on the same host. passt
 * changed it in 831857e and a458719, which are in its release of 2026-05-07. */
#pragma once

#include "base/error.h"

/* The first date of a version that announces the room in the socket, as in ND_PASTA_FIXED_TEXT. */
enum { ND_PASTA_FIXED = 20260507 };
#define ND_PASTA_FIXED_TEXT "2026-05-07"

/* Returns whether a version is one of them, by the output of `pasta --version`. No output is that
 * of a version of May 2025 or earlier, which lost it. A version without a date is not. */
[[nodiscard]] bool nd_pasta_version_stalls(const char *said);

/* Runs `pasta --version`, with a deadline. */
[[nodiscard]] struct nd_error *nd_pasta_stalls(bool *ret);
