/* SPDX-License-Identifier: Apache-2.0 */
#include "userns/subid.h"

#include <dlfcn.h>
#include <shadow/subid.h>
#include <stdio.h>

#include "base/text.h"

/* libsubid pulls in fifteen libraries, a megabyte of them resident, and the daemons never use it:
 * it is loaded on first use. It stays loaded, since it allocates memory at its start. */
#define LIBRARY "libsubid.so.5"

enum { RANGES_CEILING = 1024 };

static struct library {
        bool ready;
        FILE *nowhere; /* its log goes to a stream of ours, never to stderr */
        typeof(subid_get_uid_ranges) *get_uid_ranges;
        typeof(subid_get_gid_ranges) *get_gid_ranges;
        typeof(subid_free) *free;
} library;

static struct nd_error *library_start(void) {
        void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        typeof(subid_init) *init;

        if (!handle)
                return nd_error_new(ND_INTERNAL, 0, "load " LIBRARY "to look up subordinate IDs: %s", dlerror());
        init = (typeof(init)) dlsym(handle, "subid_init");
        library.get_uid_ranges = (typeof(library.get_uid_ranges)) dlsym(handle, "subid_get_uid_ranges");
        library.get_gid_ranges = (typeof(library.get_gid_ranges)) dlsym(handle, "subid_get_gid_ranges");
        library.free = (typeof(library.free)) dlsym(handle, "subid_free");
        library.nowhere = fopen("/dev/null", "we");
        library.ready = init && library.get_uid_ranges && library.get_gid_ranges && library.free && library.nowhere &&
                        init("nodens", library.nowhere);
        return library.ready ? nullptr : nd_error_new(ND_INTERNAL, 0, "start " LIBRARY);
}

struct nd_error *nd_subid_list_of(const char *user, enum nd_subid_kind kind, struct nd_subid_list *ret) {
        nd_cleanup(nd_subid_list_done) struct nd_subid_list ranges = {};
        struct subid_range *found = nullptr;
        int count;

        if (!library.ready)
                nd_try(library_start());
        count = kind == ND_SUBUID ? library.get_uid_ranges(user, &found) : library.get_gid_ranges(user, &found);
        for (int i = 0; i < count && i < RANGES_CEILING; i++)
                nd_vector_push(&ranges, ((struct nd_subid) {.first = found[i].start, .count = found[i].count}));
        library.free(found);
        if (count <= 0)
                return nd_error_new(ND_NOT_FOUND, 0, "no subordinate %s IDs of user '%s'",
                                    kind == ND_SUBUID ? "user" : "group", user);
        *ret = nd_take(ranges, (struct nd_subid_list) {});
        return nullptr;
}

char *nd_subid_list_text(const char *user, const struct nd_subid_list *ranges) {
        nd_autotext struct nd_text text = ND_TEXT(RANGES_CEILING * 128);

        for (size_t i = 0; i < ranges->count; i++)
                nd_text_addf(&text, "%zu: %s %llu %llu\n", i, user, (unsigned long long) ranges->items[i].first,
                             (unsigned long long) ranges->items[i].count);
        return nd_text_steal(&text);
}
