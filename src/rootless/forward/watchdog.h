/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.h - the service manager's watchdog, for confined processes
 *
 * The filter of a confined process denies opening sockets, so the socket is opened before. */
#pragma once

#include <errno.h>
#include <stdint.h>

struct rootless_watchdog {
        int fd;            /* connected to the manager; -EBADF = no watchdog */
        uint64_t every_us; /* how often we report to it */
        uint64_t fed_us;   /* last report */
};
#define WATCHDOG_NONE ((struct rootless_watchdog) {.fd = -EBADF})

/* Stays without a socket unless the manager asks for reports. */
void rootless_watchdog_open(struct rootless_watchdog *watchdog);
void rootless_watchdog_done(struct rootless_watchdog *watchdog);

/* Reports if it is time to. */
void rootless_watchdog_feed(struct rootless_watchdog *watchdog, uint64_t now_us);
