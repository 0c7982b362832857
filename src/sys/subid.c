/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/subid.h"

#include <dlfcn.h>
#include <shadow/subid.h>
#include <stdio.h>

#include "base/text.h"

/* The library comes with fifteen others, a megabyte of them resident, and a daemon asks it once: it is loaded for the question. */
#define LIBRARY "libsubid.so.5"

enum { RANGES_CEILING = 1024 };

struct library {
        void *handle;
        FILE *nowhere; /* it writes its complaints to a stream of ours, never to our standard error */
        typeof(subid_get_uid_ranges) *get_uid_ranges;
        typeof(subid_get_gid_ranges) *get_gid_ranges;
        typeof(subid_free) *free;
};

static void library_done(struct library *library) {
        if (library->handle)
                (void) dlclose(library->handle);
        if (library->nowhere)
                (void) fclose(library->nowhere);
}

static struct nd_error *library_open(struct library *ret) {
        typeof(subid_init) *init;

        ret->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        if (!ret->handle)
                return nd_error_new(ND_INTERNAL, 0, "load " LIBRARY ", which knows the subordinate IDs of users: %s",
                                    dlerror());
        init = (typeof(init)) dlsym(ret->handle, "subid_init");
        ret->get_uid_ranges = (typeof(ret->get_uid_ranges)) dlsym(ret->handle, "subid_get_uid_ranges");
        ret->get_gid_ranges = (typeof(ret->get_gid_ranges)) dlsym(ret->handle, "subid_get_gid_ranges");
        ret->free = (typeof(ret->free)) dlsym(ret->handle, "subid_free");
        ret->nowhere = fopen("/dev/null", "we");
        if (!init || !ret->get_uid_ranges || !ret->get_gid_ranges || !ret->free || !ret->nowhere ||
            !init("nodens", ret->nowhere))
                return nd_error_new(ND_INTERNAL, 0, "start " LIBRARY);
        return nullptr;
}

struct nd_error *nd_subids_of(const char *user, enum nd_subid_kind kind, nd_subids *ret) {
        nd_cleanup(library_done) struct library library = {};
        nd_cleanup(nd_subids_done) nd_subids ranges = {};
        struct subid_range *found = nullptr;
        int count;

        nd_try(library_open(&library));
        count = kind == ND_SUBUID ? library.get_uid_ranges(user, &found) : library.get_gid_ranges(user, &found);
        for (int i = 0; i < count && i < RANGES_CEILING; i++)
                nd_vector_push(&ranges, ((struct nd_subid) {.first = found[i].start, .count = found[i].count}));
        library.free(found);
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
