/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - state shared by the RPCs and the operations on pods: pod table, configuration, modules
 *
 * daemon.c builds and frees it. Only the RPCs and the operations on sandboxes and containers
 * take all of it; every other module gets the parts that it uses as arguments. */
#pragma once

#include <systemd/sd-event.h>

#include "cri/core/config.h"
#include "cri/core/pod-table.h"
#include "sys/own-userns.h"

struct cri_events;
struct nd_oci_store;
struct cri_network;
struct cri_pins;
struct cri_puller;
struct cri_record_store;
struct cri_report;
struct cri_selftest;
struct cri_stats;
struct cri_stream_server;
struct cri_image_gc;
struct cri_telemetry;
struct cri_verify;
struct cri_build_mntns;
struct cri_runtime_mntns;

struct cri_parts {
        sd_event *loop;
        struct cri_config config;
        struct nd_own_userns users; /* of the node */
        struct cri_pod_table pods;
        /* time of the last Status request, in nanoseconds since 1970; 0 = none */
        uint64_t status_asked;

        struct nd_oci_store *images;
        struct cri_puller *puller;
        struct cri_image_gc *image_gc;

        struct cri_record_store *records;
        struct cri_pins *pins;
        struct cri_build_mntns *build_mntns;
        struct cri_runtime_mntns *runtime_mntns;
        struct cri_network *network;
        struct cri_selftest *selftest;

        struct cri_verify *verify;
        struct cri_stats *stats;
        struct cri_events *events;
        struct cri_telemetry *telemetry;
        struct cri_stream_server *streams;
        struct cri_report *report;
};
