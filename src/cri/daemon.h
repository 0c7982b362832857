/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - nodens-cri as a whole: what its parts are and how long they live */
#pragma once

#include "cri/runtime.h"

struct checkup;
struct nd_grpc_server;
struct scrape;

struct daemon {
        uint64_t began; /* when it was started, in microseconds of the monotonic clock */
        struct runtime parts;
        struct checkup *cni_checks;
        struct scrape *scrape;
        struct nd_grpc_server *server;
};

/* Builds the parts; it listens, and tells systemd so, when the self-test has ended. An error says what to do. */
[[nodiscard]] struct nd_error *daemon_start(struct daemon *daemon);
void daemon_done(struct daemon *daemon);
