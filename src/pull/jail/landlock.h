/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.h - Landlock around the fetcher, as far as the kernel has it */
#pragma once

#include "base/error.h"

/* Takes away, for good and for every thread to come: all changes of files but in @writable, listening on TCP ports, unix sockets without a
 * path that others made, and signals to others. Needs no_new_privs. A kernel without Landlock, or with an older one, takes away what it
 * can; that is not an error, since the fetcher's mounts and system call filter stand without it. */
[[nodiscard]] struct nd_error *pull_landlock_fetcher(const char *const *writable, size_t count);
