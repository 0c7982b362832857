/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - the system call filter of every process of the node */
#pragma once

#include "base/error.h"

/* Loaded by init and by processes that enter the node later: denies access to the user's kernel
 * keyrings. Needs CAP_SYS_ADMIN over the node's user namespace. */
[[nodiscard]] struct nd_error *rootless_seccomp_load(void);
