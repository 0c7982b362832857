/* SPDX-License-Identifier: Apache-2.0 */
/* metrics-endpoint.h - GET /metrics on a unix socket or on the loopback, as configured */
#pragma once

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/text.h"

static constexpr uint64_t cri_metrics_retry_us = 30 * ND_SECOND_US;

struct cri_metrics_endpoint;

/* Appends all metrics to the text, whose ceiling is TELEMETRY_CEILING. */
typedef void (*cri_metrics_endpoint_format)(struct nd_text *ret, void *userdata);

struct cri_metrics_endpoint_settings {
        sd_event *loop;
        const char *where; /* a path, 127.0.0.1:PORT, or "off"; borrowed */
        uint64_t retry_us; /* after a failure to listen; 0 = cri_metrics_retry_us */
        cri_metrics_endpoint_format format;
        void *userdata;
};

/* Listens. Metrics are optional: if the address cannot be opened, that is logged with the
 * reason, and tried again until it succeeds. nullptr for "off". */
[[nodiscard]] struct cri_metrics_endpoint *cri_metrics_endpoint_new(const struct cri_metrics_endpoint_settings *settings);
void cri_metrics_endpoint_free(struct cri_metrics_endpoint *scrape);
