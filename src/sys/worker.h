/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - a function run in a short-lived child, its error and one descriptor handed back
 *
 * Whatever needs namespaces of its own, other credentials, or may block for ever (a path on a dead NFS server) runs in a child
 * with a deadline; the caller sees only the result. */
#pragma once

#include <stdint.h>

#include "base/error.h"

/* Runs in the child, which is a copy of the caller with all its memory. ret_fd is -EBADF on entry; a descriptor put there is handed
 * to the caller. */
typedef struct nd_error *(*nd_worker_function)(void *argument, int *ret_fd);

/* Waits for the result, at most deadline_us from now; then the child is killed and the error is ND_DEADLINE. The error's text names
 * what, unless the worker gave its own. ret_fd may be nullptr where no descriptor is expected. */
[[nodiscard]] struct nd_error *nd_worker_run(const char *what, nd_worker_function function, void *argument,
                                             uint64_t deadline_us, int *ret_fd);
