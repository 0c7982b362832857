/* SPDX-License-Identifier: Apache-2.0 */
/* scrape.h - GET /metrics, where the configuration wants it: on a unix socket or on the loopback */
#pragma once

#include <systemd/sd-event.h>

#include "base/text.h"

struct scrape;

/* Appends all metrics to the text, whose ceiling is TELEMETRY_CEILING. */
typedef void (*scrape_format)(struct nd_text *ret, void *userdata);

/* where is the configuration's: a path, 127.0.0.1:PORT, or "off", which leaves *ret nullptr. */
[[nodiscard]] struct nd_error *scrape_new(sd_event *loop, const char *where, scrape_format format, void *userdata,
                                          struct scrape **ret);
void scrape_free(struct scrape *scrape);
