/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - nodens-cri as a whole: what its parts are and how long they live */
#pragma once

#include <systemd/sd-event.h>

#include "cri/config.h"
#include "cri/pods.h"
#include "cri/pull.h"
#include "net/grpc-server.h"

struct nd_image_store;

struct daemon {
        uint64_t began;        /* when it was started, in microseconds of the monotonic clock */
        uint64_t status_asked; /* when somebody last asked for the CRI's Status, in nanoseconds since 1970; 0 = nobody */
        sd_event *loop;
        struct cri_config config;
        struct nd_image_store *images;
        struct puller *puller;
        struct sweeper *sweeper;
        struct pods pods;
        struct record_book *records;
        struct pins *pins;
        struct workshop *workshop;
        struct network *network;
        struct checkup *checkup;
        struct selftest *selftest;
        struct verify *verify;
        struct stats *stats;
        struct events *events;
        struct telemetry *telemetry;
        struct scrape *scrape;
        struct stream_server *streams;
        struct nd_grpc_server *server;
};

/* Builds the parts; it listens, and tells systemd so, when the self-test has ended. An error says what to do. */
[[nodiscard]] struct nd_error *daemon_start(struct daemon *daemon);
void daemon_done(struct daemon *daemon);
