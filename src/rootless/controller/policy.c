/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/controller/policy.h"

#include <string.h>

#include "base/text.h"

static struct nd_error *parse_range(char *word, struct rootless_port_range *ret) {
        char *last_word = strchr(word, '-');
        uint64_t first, last;

        if (last_word)
                *last_word++ = '\0';
        else
                last_word = word;
        if (nd_text_parse_u64(word, UINT16_MAX, &first) < 0 || nd_text_parse_u64(last_word, UINT16_MAX, &last) < 0 ||
            first == 0 || first > last)
                return nd_error_new(ND_INVALID, 0, "invalid range of ports '%.16s-%.16s'", word, last_word);
        *ret = (struct rootless_port_range) {.first = (uint16_t) first, .last = (uint16_t) last};
        return nullptr;
}

struct nd_error *rootless_port_ranges_parse(const char *text, struct rootless_port_ranges *ret) {
        struct rootless_port_ranges ranges = {};
        nd_autofree char *copy = nd_strdup(text);
        char *rest = copy, *word;

        if (nd_streq(text, "all"))
                ranges.items[ranges.count++] = (struct rootless_port_range) {.first = 1, .last = UINT16_MAX};
        else if (!nd_streq(text, "none"))
                while ((word = strsep(&rest, ","))) {
                        if (ranges.count == POLICY_RANGES)
                                return nd_error_new(ND_INVALID, 0, "more than %d ranges of ports", POLICY_RANGES);
                        nd_try(parse_range(word, &ranges.items[ranges.count++]));
                }
        *ret = ranges;
        return nullptr;
}

bool rootless_port_ranges_have(const struct rootless_port_ranges *ranges, uint16_t port) {
        for (size_t i = 0; i < ranges->count; i++)
                if (ranges->items[i].first <= port && port <= ranges->items[i].last)
                        return true;
        return false;
}
