/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/format.h"

#include <stdio.h>

#include "base/memory.h"

const char *cli_format_age(uint64_t at, uint64_t now, char ret[static FORMAT_AGE]) {
        static const struct {
                uint64_t seconds;
                char unit;
        } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
        uint64_t age = now > at ? (now - at) / 1000000000 : 0;
        size_t i = 0;

        if (at == 0)
                return "-";
        while (i + 1 < nd_count_of(units) && age < 2 * units[i].seconds)
                i++;
        (void) snprintf(ret, FORMAT_AGE, "%llu%c", (unsigned long long) (age / units[i].seconds), units[i].unit);
        return ret;
}

char *cli_format_ids(const Nodens__V1__PodEntry *pod) {
        if (!pod->uids)
                return nd_strdup("node");
        return nd_format("%u-%u", pod->uids->host, pod->uids->host + pod->uids->count - 1);
}

const char *cli_format_count(uint64_t count, const char *noun, char ret[static FORMAT_COUNT]) {
        (void) snprintf(ret, FORMAT_COUNT, "%llu %s%s", (unsigned long long) count, noun, count == 1 ? "" : "s");
        return ret;
}

const char *cli_format_size(uint64_t bytes, char text[static FORMAT_SIZE]) {
        static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
        double value = (double) bytes;
        size_t unit = 0;

        for (; value >= 999.95 && unit + 1 < nd_count_of(units); unit++)
                value /= 1000;
        (void) snprintf(text, FORMAT_SIZE, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
        return text;
}
