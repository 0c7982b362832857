/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - the socket that crun sends a terminal to */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct cri_stream_console;

/* The terminal's descriptor is the callback's; it does not block. Runs at most once. */
typedef void (*cri_stream_console_callback)(int fd, void *userdata);

/* Listens in a directory that nobody but us may enter. */
[[nodiscard]] struct nd_error *cri_stream_console_listen(sd_event *loop, const char *directory,
                                                         cri_stream_console_callback callback, void *userdata,
                                                         struct cri_stream_console **ret);
int cri_stream_console_socket(
        const struct cri_stream_console
                *console); /* for a connect() by /proc/self/fd/<N>: the socket's file, O_PATH. Stays ours */

/* Looks now, for whoever learns from elsewhere that it must have come. */
void cri_stream_console_look(struct cri_stream_console *console);

void cri_stream_console_free(struct cri_stream_console *console); /* nullptr is fine */
