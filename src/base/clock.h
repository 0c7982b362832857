/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - monotonic time in nanoseconds and microseconds, and the time of day */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t nd_clock_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static inline uint64_t nd_clock_us(void) {
        return nd_clock_ns() / 1000;
}

/* Nanoseconds since 1970: for display and records, never for a deadline. */
static inline uint64_t nd_clock_wall_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

enum {
        ND_CLOCK_TEXT = 48,
};

/* Times as Kubernetes writes them, in UTC: "2026-11-17T01:02:03Z", and with microseconds
 * "2026-11-17T01:02:03.000004Z". Return text. */
const char *nd_clock_text(time_t when, char text[static ND_CLOCK_TEXT]);
const char *nd_clock_text_us(uint64_t wall_ns, char text[static ND_CLOCK_TEXT]);

#define ND_MS_US UINT64_C(1000)
#define ND_SECOND_US UINT64_C(1000000)
