/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/delegation.h"

#include <string.h>

#include "base/text.h"
#include "sys/file.h"
#include "userns/range.h"

enum {
        PODS_ADVISED = 15,
        FIRST_ADVISED = 524288, /* above the ranges that adduser assigns */
        SUBID_BYTES = 1024 * 1024,
};

/* Adds a line, or extends the last one if the new one continues it inside and outside. */
static void add_line(struct nd_userns_maps *maps, uint64_t inside, uint64_t outside, uint64_t count) {
        struct nd_userns_map *last = maps->count > 0 ? &maps->items[maps->count - 1] : nullptr;

        if (last && last->inside > 0 && (uint64_t) last->inside + last->count == inside &&
            (uint64_t) last->outside + last->count == outside)
                last->count += (uint32_t) count;
        else if (maps->count < ND_ID_MAP_LINES)
                nd_vector_push(maps, ((struct nd_userns_map) {.inside = (uint32_t) inside,
                                                              .outside = (uint32_t) outside,
                                                              .count = (uint32_t) count}));
}

static uint64_t at_most(uint64_t count, uint64_t most) {
        return count < most ? count : most;
}

void nd_delegation_maps(uint32_t own, const struct nd_subid_list *ranges, struct nd_userns_maps *ret) {
        uint64_t inside = 1;

        nd_vector_push(ret, ((struct nd_userns_map) {.inside = 0, .outside = own, .count = 1}));
        nd_vector_each (range, ranges) {
                uint64_t first = range->first, count = range->count;

                /* The last ID, 2^32 - 1, means "no ID" to the kernel and cannot be mapped. */
                if (first >= ND_ID_SPACE - 1 || count == 0)
                        continue;
                count = at_most(count, ND_ID_SPACE - 1 - first);
                if (inside < ND_IDS_UNIT) {
                        uint64_t low = at_most(count, ND_IDS_UNIT - inside);

                        add_line(ret, inside, first, low);
                        inside += low;
                        first += low;
                        count -= low;
                }
                if (count == 0)
                        continue;
                if (inside % ND_IDS_UNIT != 0 && count >= ND_IDS_UNIT)
                        inside += ND_IDS_UNIT - inside % ND_IDS_UNIT;
                if (inside >= ND_ID_SPACE - 1)
                        break;
                count = at_most(count, ND_ID_SPACE - 1 - inside);
                add_line(ret, inside, first, count);
                inside += count;
        }
}

/* Returns the first ID after all ranges in a file like /etc/subuid: lines NAME:FIRST:COUNT. */
static uint64_t end_of_subids(const char *path) {
        nd_autofree char *text = nullptr;
        nd_autoerror struct nd_error *error = nd_file_read_kernel(path, SUBID_BYTES, &text);
        char *rest = error ? nullptr : text, *line;
        uint64_t end = 0, first, count;

        while ((line = strsep(&rest, "\n"))) {
                const char *name = strsep(&line, ":"), *first_text = strsep(&line, ":");

                if (name && first_text && line && nd_text_parse_u64(first_text, UINT32_MAX, &first) == 0 &&
                    nd_text_parse_u64(line, UINT32_MAX, &count) == 0 && first + count > end)
                        end = first + count;
        }
        return end;
}

char *nd_delegation_advice(const char *name) {
        uint64_t uids = end_of_subids("/etc/subuid"), gids = end_of_subids("/etc/subgid"), first = uids > gids ? uids : gids,
                 count = (PODS_ADVISED + 1) * (uint64_t) ND_IDS_UNIT;

        first = first > FIRST_ADVISED ? (first + ND_IDS_UNIT - 1) / ND_IDS_UNIT * ND_IDS_UNIT : FIRST_ADVISED;
        if (first + count >= UINT32_MAX)
                return nd_format("as root, assign %s %llu unused IDs in /etc/subuid and /etc/subgid", name,
                                 (unsigned long long) count);
        return nd_format("as root: usermod --add-subuids %llu-%llu --add-subgids %llu-%llu %s", (unsigned long long) first,
                         (unsigned long long) (first + count - 1), (unsigned long long) first,
                         (unsigned long long) (first + count - 1), name);
}
