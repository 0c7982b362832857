/* SPDX-License-Identifier: Apache-2.0 */
/* userns.h - creates user namespaces with given maps, and parses the maps of our own */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

/* One line of /proc/<pid>/uid_map. */
struct nd_userns_map {
        uint32_t inside;
        uint32_t outside;
        uint32_t count;
};

struct nd_userns_maps {
        struct nd_userns_map *items;
        size_t count;
        size_t capacity;
};
static inline void nd_userns_maps_done(struct nd_userns_maps *maps) {
        nd_vector_done(maps);
}

enum {
        ND_ID_MAP_LINES = 340, /* the kernel's own ceiling */
};

struct nd_userns_plan {
        const struct nd_userns_map *uids;
        size_t uid_count;
        const struct nd_userns_map *gids;
        size_t gid_count;
        /* The creator's effective IDs are the IDs that 0 maps to, so that limits are charged there;
         * needs privilege. */
        bool charge_to_root;
        bool deny_setgroups; /* required to write a gid map without privilege */
};

/* Creates a user namespace and returns a descriptor of it; nothing else keeps it alive. */
[[nodiscard]] struct nd_error *nd_userns_make(const struct nd_userns_plan *plan, int *ret_fd);

/* The two halves of nd_userns_make(), for callers that create other namespaces with it
 * (namespace.h): the child becomes the owner of a new one (0 or -errno), and waits until its parent
 * has written the maps through the child's directory in /proc. */
[[nodiscard]] int nd_userns_enter_new(const struct nd_userns_plan *plan);
[[nodiscard]] struct nd_error *nd_userns_write_maps(const struct nd_userns_plan *plan, int procfd);

/* For workers: becomes root of a user namespace, permanently. Its capabilities are valid only
 * there. */
[[nodiscard]] struct nd_error *nd_userns_join(int fd);

/* Parses the text of a uid_map or gid_map file. */
[[nodiscard]] struct nd_error *nd_userns_maps_parse(const char *text, struct nd_userns_maps *ret);

/* The maps of our own user namespace; kind is "uid" or "gid". */
[[nodiscard]] struct nd_error *nd_userns_maps_own(const char *kind, struct nd_userns_maps *ret);

/* True for the map of the initial namespace: all IDs, unchanged. */
[[nodiscard]] bool nd_userns_maps_identity(const struct nd_userns_maps *maps);
