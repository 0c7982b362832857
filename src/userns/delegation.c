/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/delegation.h"

#include <string.h>

#include "base/text.h"
#include "sys/file.h"

enum {
        PODS_ADVISED = 15,
        FIRST_ADVISED = 524288, /* above the ranges that adduser assigns */
        SUBID_BYTES = 1024 * 1024,
        NOBODY = 65532, /* first of the high IDs that images use: nonroot, nobody */
        NOBODIES = 3,
        FEW_LEAST = 64, /* with fewer IDs than this the low ones matter more */
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

/* The number of IDs of a range that the kernel can map: the last one, 2^32 - 1, means "no ID". */
static uint64_t mappable(const struct nd_subid *range) {
        return range->first >= ND_ID_SPACE - 1 ? 0 : at_most(range->count, ND_ID_SPACE - 1 - range->first);
}

/* Where the low IDs end if the ranges do not cover the first block; 0 if they do. */
static uint64_t end_of_low(const struct nd_subid_list *ranges) {
        uint64_t total = 0;

        nd_vector_each (range, ranges) {
                total = at_most(total + mappable(range), ND_ID_SPACE);
        }
        return total >= FEW_LEAST && total < ND_IDS_UNIT - 1 ? total - NOBODIES + 1 : 0;
}

/* Maps IDs of a range into the first block; returns their number. */
static uint64_t fill_low(struct nd_userns_maps *ret, uint64_t first, uint64_t count, uint64_t gap, uint64_t *inside) {
        uint64_t used = 0;

        while (used < count && *inside < ND_IDS_UNIT) {
                uint64_t end = *inside < gap ? gap : ND_IDS_UNIT, part = at_most(count - used, end - *inside);

                add_line(ret, *inside, first + used, part);
                used += part;
                *inside += part;
                if (*inside == gap)
                        *inside = NOBODY;
        }
        return used;
}

void nd_delegation_maps(uint32_t own, const struct nd_subid_list *ranges, struct nd_userns_maps *ret) {
        uint64_t inside = 1, gap = end_of_low(ranges);

        nd_vector_push(ret, ((struct nd_userns_map) {.inside = 0, .outside = own, .count = 1}));
        nd_vector_each (range, ranges) {
                uint64_t count = mappable(range), low = fill_low(ret, range->first, count, gap, &inside);

                count -= low;
                if (count == 0)
                        continue;
                if (inside % ND_IDS_UNIT != 0 && count >= ND_IDS_UNIT)
                        inside += ND_IDS_UNIT - inside % ND_IDS_UNIT;
                if (inside >= ND_ID_SPACE - 1)
                        break;
                count = at_most(count, ND_ID_SPACE - 1 - inside);
                add_line(ret, inside, range->first + low, count);
                inside += count;
        }
}

struct nd_userns_range nd_delegation_pods(const struct nd_userns_maps *uids, const struct nd_userns_maps *gids) {
        nd_cleanup(nd_userns_extents_done) struct nd_userns_extents extents = {};
        uint64_t first = 0, end = 0, best = 0, best_first = 0;

        nd_userns_extents_of_maps(uids, gids, &extents);
        nd_vector_each (extent, &extents) {
                uint64_t from = (extent->first + ND_IDS_UNIT - 1) / ND_IDS_UNIT,
                         to = (extent->first + extent->count) / ND_IDS_UNIT;

                from = from > 0 ? from : 1;
                if (to <= from)
                        continue;
                first = from == end ? first : from; /* it may continue the one before */
                end = to;
                if (end - first > best) {
                        best = end - first;
                        best_first = first;
                }
        }
        return (struct nd_userns_range) {.first = (uint32_t) (best_first * ND_IDS_UNIT),
                                         .count = (uint32_t) (best * ND_IDS_UNIT)};
}

uint64_t nd_delegation_count(const struct nd_userns_maps *maps) {
        uint64_t count = 0;

        nd_vector_each (map, maps) {
                count += map->count;
        }
        return count;
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
