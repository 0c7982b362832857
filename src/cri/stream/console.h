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
int console_directory(const struct console *console);    /* its descriptor, which stays ours */
const char *console_name(const struct console *console); /* the socket's name there */

/* Looks now, for whoever learns from elsewhere that it must have come. */
void console_look(struct console *console);

void console_free(struct console *console); /* nullptr is fine */
