/* SPDX-License-Identifier: Apache-2.0 */
/* scrape.h - GET /metrics, where the configuration wants it: on a unix socket or on the loopback */
#pragma once

#include "base/error.h"

struct daemon;
struct scrape;

/* *ret is nullptr when the configuration says "off". */
[[nodiscard]] struct nd_error *scrape_new(struct daemon *daemon, struct scrape **ret);
void scrape_free(struct scrape *scrape);
