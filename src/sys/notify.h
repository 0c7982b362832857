/* SPDX-License-Identifier: Apache-2.0 */
/* notify.h - what a daemon is doing, for `systemctl status`
 *
 * systemd shows the text as "Status:" of the unit, also after the daemon has exited, and with
 * Type=notify waits for nd_notify_ready(). Without a service manager the functions do nothing.
 * The text is one printable line of at most ND_NOTIFY_BYTES: a newline in it would start another
 * assignment of the message, and systemd ignores messages that are too long or not UTF-8. A
 * status is never waited for: if the manager's queue is full, it is dropped. */
#pragma once

#include "base/error.h"

enum {
        ND_NOTIFY_BYTES = 2048,
};

/* A step of the start or stop: "running the self-test". */
void nd_notify_status(const char *status);

/* READY=1; systemd shows the text until the next one. */
void nd_notify_ready(const char *status);

/* Why the daemon cannot start; the caller exits afterwards. "cannot start: " precedes the text. */
void nd_notify_failure(const struct nd_error *error);

/* STOPPING=1 */
void nd_notify_stopping(void);

/* Sends assignments ("MAINPID=1") together with the status, and waits while the manager's queue
 * is full. Returns what sd_notify(3) does. */
[[nodiscard]] int nd_notify_send(const char *assignments, const char *status);
