/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/own-userns.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/file.h"
#include "sys/process.h"

enum {
        RANGES_SHOWN = 4,
        DESCRIPTION = 256,
        IDS_OF_IMAGES = 65536,
};

/* The number of the host's user namespace is part of the kernel's ABI (USER_NS_INIT_INO). Its map
 * alone would not do: another namespace may map all IDs to themselves. */
static constexpr ino_t initial_number = 0xEFFFFFFD;

void nd_own_userns_done(struct nd_own_userns *own) {
        nd_userns_maps_done(&own->uids);
        nd_userns_maps_done(&own->gids);
}

struct nd_error *nd_own_userns_read(struct nd_own_userns *ret) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};
        struct stat st;

        if (stat("/proc/self/ns/user", &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat our user namespace");
        own.initial = st.st_ino == initial_number;
        nd_try(nd_userns_maps_own("uid", &own.uids));
        nd_try(nd_userns_maps_own("gid", &own.gids));
        *ret = nd_take(own, (struct nd_own_userns) {});
        return nullptr;
}

static uint64_t count_of(const struct nd_userns_maps *maps) {
        uint64_t count = 0;

        nd_vector_each (map, maps) {
                count += map->count;
        }
        return count;
}

bool nd_own_userns_is_small(const struct nd_own_userns *own) {
        return !own->initial && (count_of(&own->uids) < IDS_OF_IMAGES || count_of(&own->gids) < IDS_OF_IMAGES);
}

bool nd_own_userns_is_single(const struct nd_own_userns *own) {
        return !own->initial && count_of(&own->uids) == 1 && count_of(&own->gids) == 1;
}

bool nd_own_userns_in_node(void) {
        nd_cleanup(nd_own_userns_done) struct nd_own_userns own = {};
        nd_autoerror struct nd_error *error = nd_own_userns_read(&own);

        return !error && !own.initial;
}

/* Whether [first, first + count) lies within one line. */
static bool hold(const struct nd_userns_maps *maps, uint64_t first, uint64_t count) {
        nd_vector_each (map, maps) {
                if (first >= map->inside && first + count <= (uint64_t) map->inside + map->count)
                        return true;
        }
        return false;
}

bool nd_own_userns_has_uid(const struct nd_own_userns *own, uint32_t uid) {
        return hold(&own->uids, uid, 1);
}

bool nd_own_userns_has_gid(const struct nd_own_userns *own, uint32_t gid) {
        return hold(&own->gids, gid, 1);
}

uint32_t nd_own_userns_last_gid(const struct nd_own_userns *own) {
        uint32_t last = 0;

        nd_vector_each (map, &own->gids) {
                if (map->inside + (map->count - 1) > last)
                        last = map->inside + (map->count - 1);
        }
        return last;
}

bool nd_own_userns_can_map(const struct nd_own_userns *own, const struct nd_userns_map *uids,
                           const struct nd_userns_map *gids) {
        return hold(&own->uids, uids->outside, uids->count) && hold(&own->gids, gids->outside, gids->count);
}

/* Advances over lines that continue each other; the kernel shows them in the order in which they
 * were written, which is ours. */
static uint64_t end_of_run(const struct nd_userns_maps *maps, size_t *at) {
        uint64_t end = (uint64_t) maps->items[*at].inside + maps->items[*at].count;

        for (++*at; *at < maps->count && maps->items[*at].inside == end; ++*at)
                end += maps->items[*at].count;
        return end;
}

char *nd_own_userns_describe(const struct nd_userns_maps *maps) {
        nd_autotext struct nd_text text = ND_TEXT(DESCRIPTION);
        size_t at = 0;

        for (size_t run = 0; at < maps->count && run < RANGES_SHOWN; run++) {
                uint32_t first = maps->items[at].inside;
                uint64_t end = end_of_run(maps, &at);

                nd_text_add(&text, run > 0 ? ", " : "");
                if (end - first == 1)
                        nd_text_addf(&text, "%u", first);
                else
                        nd_text_addf(&text, "%u to %llu", first, (unsigned long long) end - 1);
        }
        if (at < maps->count)
                nd_text_add(&text, ", ...");
        return nd_text_steal(&text);
}

struct nd_error *nd_own_userns_start(const struct nd_own_userns *own, char ret[static ND_OWN_USERNS_START + 1]) {
        enum { LAST = 12 }; /* hexadecimal digits of the last part */
        nd_autofree char *text = nullptr;
        uint64_t started;

        nd_try(nd_file_read_kernel("/proc/sys/kernel/random/boot_id", 64, &text));
        text[strcspn(text, "\n")] = '\0';
        if (strlen(text) != ND_OWN_USERNS_START)
                return nd_error_new(ND_INTERNAL, 0, "invalid boot id of the kernel, not a UUID: '%s'", text);
        memcpy(ret, text, ND_OWN_USERNS_START + 1);
        if (own->initial)
                return nullptr;
        nd_try(nd_process_start_time(1, &started));
        (void) snprintf(ret + ND_OWN_USERNS_START - LAST, LAST + 1, "%012llx",
                        (unsigned long long) started & ((1ULL << (4 * LAST)) - 1));
        return nullptr;
}
