/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/subid.h"

#include <shadow/subid.h>
#include <stdio.h>

#include "base/text.h"

enum { RANGES_CEILING = 1024 };

/* libsubid writes its complaints to a stream of ours, never to our standard error. */
static bool library_ready(void) {
        static int ready = -1;

        if (ready < 0) {
                FILE *nowhere = fopen("/dev/null", "we");

                ready = nowhere && subid_init("nodens", nowhere); /* NOLINT(clang-analyzer-unix.Stream): libsubid keeps it */
        }
        return ready > 0;
}

struct nd_error *nd_subids_of(const char *user, enum nd_subid_kind kind, nd_subids *ret) {
        nd_cleanup(nd_subids_done) nd_subids ranges = {};
        struct subid_range *found = nullptr;
        int count;

        if (!library_ready())
                return nd_error_new(ND_INTERNAL, 0, "start libsubid");
        count = kind == ND_SUBUID ? subid_get_uid_ranges(user, &found) : subid_get_gid_ranges(user, &found);
        for (int i = 0; i < count && i < RANGES_CEILING; i++)
                nd_vector_push(&ranges, ((struct nd_subid) {.first = found[i].start, .count = found[i].count}));
        subid_free(found);
        if (count <= 0)
                return nd_error_new(ND_NOT_FOUND, 0, "no subordinate %s IDs of user '%s'",
                                    kind == ND_SUBUID ? "user" : "group", user);
        *ret = nd_take(ranges, (nd_subids) {});
        return nullptr;
}

char *nd_subids_text(const char *user, const nd_subids *ranges) {
        nd_autotext text = ND_TEXT(RANGES_CEILING * 128);

        for (size_t i = 0; i < ranges->count; i++)
                nd_text_addf(&text, "%zu: %s %llu %llu\n", i, user, (unsigned long long) ranges->items[i].first,
                             (unsigned long long) ranges->items[i].count);
        return nd_text_steal(&text);
}
