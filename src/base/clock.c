/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdio.h>

const char *nd_clock_text(time_t when, char text[static ND_CLOCK_TEXT]) {
        struct tm parts = {};

        (void) gmtime_r(&when, &parts);
        if (strftime(text, ND_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
                *text = '\0';
        return text;
}

const char *nd_clock_text_us(uint64_t wall_ns, char text[static ND_CLOCK_TEXT]) {
        time_t seconds = (time_t) (wall_ns / 1000000000);
        struct tm parts = {};
        size_t length;

        (void) gmtime_r(&seconds, &parts);
        length = strftime(text, ND_CLOCK_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
        (void) snprintf(text + length, ND_CLOCK_TEXT - length, ".%06uZ", (unsigned) (wall_ns % 1000000000 / 1000));
        return text;
}
