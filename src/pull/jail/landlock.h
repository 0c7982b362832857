/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.h - Landlock rules of the fetcher, as far as the kernel supports them */
#pragma once

#include "base/error.h"

/* Denies, permanently and for all later threads: changes of files except in @writable, listening on
 * TCP ports, abstract unix sockets of other processes, and signals to them. Needs no_new_privs.
 * With an older kernel or one without Landlock fewer of these are denied; that is not an error,
 * since the fetcher's mounts and system call filter work without it. */
[[nodiscard]] struct nd_error *pull_landlock_fetcher(const char *const *writable, size_t count);
