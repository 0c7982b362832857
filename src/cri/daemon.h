/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - nodens-cri as a whole: its parts and their lifetime */
#pragma once

#include "cri/core/parts.h"

struct cri_bridge_upgrade;
struct cri_cni_check;
struct nd_grpc_server;
struct cri_metrics_endpoint;

struct cri_daemon {
        uint64_t began; /* start time in microseconds of the monotonic clock */
        struct cri_parts parts;
        struct cri_cni_check *cni_checks;
        struct cri_bridge_upgrade *bridge_upgrade;
        struct cri_metrics_endpoint *scrape;
        struct nd_grpc_server *server;
        struct nd_error *failure; /* why the loop has ended, if it could not serve */
};

/* Creates the parts. Listens, and notifies systemd, when the self-test has completed. */
[[nodiscard]] struct nd_error *cri_daemon_start(struct cri_daemon *daemon);
void cri_daemon_done(struct cri_daemon *daemon);
