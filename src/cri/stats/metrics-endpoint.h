/* SPDX-License-Identifier: Apache-2.0 */
/* metrics-endpoint.h - GET /metrics on a unix socket or on the loopback, as configured */
#pragma once

#include <systemd/sd-event.h>

#include "base/text.h"

struct cri_metrics_endpoint;

/* Appends all metrics to the text, whose ceiling is TELEMETRY_CEILING. */
typedef void (*cri_metrics_endpoint_format)(struct nd_text *ret, void *userdata);

/* where, from the configuration: a path, 127.0.0.1:PORT, or "off", which leaves *ret nullptr. */
[[nodiscard]] struct nd_error *cri_metrics_endpoint_new(sd_event *loop, const char *where, cri_metrics_endpoint_format format,
                                                        void *userdata, struct cri_metrics_endpoint **ret);
void cri_metrics_endpoint_free(struct cri_metrics_endpoint *scrape);
