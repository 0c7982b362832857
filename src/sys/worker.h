/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - runs a function in a short-lived child, which returns its error and one descriptor
 *
 * Work that needs namespaces of its own, other credentials, or may block forever (a path on a dead
 * NFS server) runs in a child with a deadline; the caller sees only the result. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/error.h"

/* Runs in the child, which is a copy of the caller with all its memory. ret_fd is -EBADF on entry;
 * a descriptor stored there is passed to the caller. */
typedef struct nd_error *(*nd_worker_function)(void *argument, int *ret_fd);

/* Waits for the result, at most deadline_us from now; then the child is killed and the error is
 * ND_DEADLINE. The error text names what, unless the worker returned its own. ret_fd may be nullptr
 * if no descriptor is expected. */
[[nodiscard]] struct nd_error *nd_worker_run(const char *what, nd_worker_function function, void *argument,
                                             uint64_t deadline_us, int *ret_fd);

/* The same on a loop: the callback runs once, from the loop, with the error (which the callback
 * frees) or nullptr, and the descriptor (which the callback closes) or -EBADF. If this call returns
 * an error, nothing runs and the callback will not. */
struct nd_worker;
typedef void (*nd_worker_callback)(struct nd_error *error, int fd, void *userdata);
[[nodiscard]] struct nd_error *nd_worker_start(sd_event *loop, const char *what, nd_worker_function function, void *argument,
                                               uint64_t deadline_us, nd_worker_callback callback, void *userdata,
                                               struct nd_worker **ret);

/* Kills a worker whose callback has not run yet; it will not run. nullptr is fine. */
void nd_worker_cancel(struct nd_worker *worker);
