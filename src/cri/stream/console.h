/* SPDX-License-Identifier: Apache-2.0 */
/* console.h - the socket that crun sends a terminal to */
#pragma once

#include <systemd/sd-event.h>

#include "base/error.h"

struct console;

/* The terminal's descriptor is the callback's; it does not block. Runs at most once. */
typedef void (*console_callback)(int fd, void *userdata);

/* Listens in a directory that nobody but us may enter. */
[[nodiscard]] struct nd_error *console_listen(sd_event *loop, const char *directory, console_callback callback, void *userdata,
                                              struct console **ret);
int console_socket(
        const struct console *console); /* for a connect() by /proc/self/fd/<N>: the socket's file, O_PATH. Stays ours */

/* Looks now, for whoever learns from elsewhere that it must have come. */
void console_look(struct console *console);

void console_free(struct console *console); /* nullptr is fine */
