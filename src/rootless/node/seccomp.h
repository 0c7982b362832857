/* SPDX-License-Identifier: Apache-2.0 */
/* seccomp.h - the system call filter of every process of the node */
#pragma once

#include "base/error.h"

/* Loaded by init and by what enters the node later: keeps the user's kernel keyrings out of reach. Takes CAP_SYS_ADMIN over the node's
 * user namespace. */
[[nodiscard]] struct nd_error *rootless_seccomp_load(void);
