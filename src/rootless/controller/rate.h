/* SPDX-License-Identifier: Apache-2.0 */
/* rate.h - limits how often something happens that users of the cluster can cause */
#pragma once

#include <stdint.h>

struct rootless_rate {
        uint64_t interval_us; /* one per interval, */
        uint64_t burst;       /* and so many at once after a pause */
        uint64_t until_us;    /* time that is used up */
        uint64_t suppressed;  /* since the last one that was allowed */
};

/* Whether it may happen now. */
static inline bool rootless_rate_allows(struct rootless_rate *rate, uint64_t now_us) {
        uint64_t burst_us = rate->burst * rate->interval_us;

        if (rate->until_us + burst_us < now_us)
                rate->until_us = now_us - burst_us;
        if (rate->until_us + rate->interval_us > now_us) {
                rate->suppressed++;
                return false;
        }
        rate->until_us += rate->interval_us;
        return true;
}
