/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - the console socket over which crun sends a terminal */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct cri_stream_console;

/* The callback owns the terminal's descriptor, which is non-blocking. Runs at most once. */
typedef void (*cri_stream_console_callback)(int fd, void *userdata);

/* Listens in a directory that only our user can enter. */
[[nodiscard]] struct nd_error *cri_stream_console_listen(sd_event *loop, const char *directory,
                                                         cri_stream_console_callback callback, void *userdata,
                                                         struct cri_stream_console **ret);
/* for a connect() by /proc/self/fd/<N>: the socket file, O_PATH. Borrowed */
int cri_stream_console_socket(const struct cri_stream_console *console);

/* Checks now, for callers that know by other means that the terminal must have arrived. */
void cri_stream_console_look(struct cri_stream_console *console);

void cri_stream_console_free(struct cri_stream_console *console); /* nullptr is allowed */
