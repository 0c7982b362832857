/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - what the RPCs and the operations on pods share: pods, configuration, parts
 *
 * daemon.c builds and frees it. Only the RPCs and the operations on sandboxes and containers take
 * all of it; every other module gets the parts that it uses as arguments. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/config.h"
#include "cri/pods.h"

struct events;
struct nd_image_store;
struct network;
struct pins;
struct puller;
struct record_book;
struct selftest;
struct stats;
struct stream_server;
struct sweeper;
struct telemetry;
struct verify;
struct workshop;

struct runtime {
        sd_event *loop;
        struct cri_config config;
        struct pods pods;
        uint64_t status_asked; /* time of the last Status request, in nanoseconds since 1970; 0 = none */

        struct nd_image_store *images;
        struct puller *puller;
        struct sweeper *image_gc;

        struct record_book *records;
        struct pins *pins;
        struct workshop *build_mntns;
        struct network *network;
        struct selftest *selftest;

        struct verify *verify;
        struct stats *stats;
        struct events *events;
        struct telemetry *telemetry;
        struct stream_server *streams;
};
