/* SPDX-License-Identifier: Apache-2.0 */
/* A block of IDs cannot be mapped across two extents of the parent's map.
 *
 * What the kernel does: each line of a new uid_map must lie within one line of the parent
 * namespace's map. Two lines that touch inside the parent but lead to different places outside do
 * not make one (EPERM); a block within either of them is accepted.
 *
 * Why nodens needs it: a rootless node lives in a user namespace with several delegated extents
 * (its own ID, then the ranges of /etc/subuid), which look like one range from inside. The
 * allocator must never hand out a block that spans two of them: the pod's namespace could not be
 * made. */
#include "evidence.h"

/* Makes a namespace with one map for both kinds of IDs, within the current one, and returns the
 * errno. */
static int try_map(struct nd_userns_map map) {
        struct nd_userns_plan plan = {.uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1};
        nd_autoclose int fd = -EBADF;
        nd_autoerror struct nd_error *error = nd_userns_make(&plan, &fd);

        saw("inside: map 0.. to %u.., %u IDs: %s", map.outside, map.count, error ? nd_error_text(error) : "made");
        return nd_error_errno(error);
}

static int inside(void *argument) {
        char text[256];

        enter_userns(*(int *) argument);
        saw("the parent's uid_map:\n%s", read_text("/proc/self/uid_map", text, sizeof text));
        expect(try_map((struct nd_userns_map) {0, BLOCK, BLOCK}) == 0, "a block within the first extent is accepted");
        expect(try_map((struct nd_userns_map) {0, 2 * BLOCK, BLOCK}) == 0, "a block within the second extent is accepted");
        expect(try_map((struct nd_userns_map) {0, 2 * BLOCK - BLOCK / 2, BLOCK}) == EPERM,
               "one that has half of each is refused, though all its IDs are mapped");
        expect(try_map((struct nd_userns_map) {0, 3 * BLOCK, BLOCK}) == EPERM, "one past the end is refused");
        return 0;
}

int main(void) {
        /* 0..131071 and 131072..196607 touch inside and are far apart outside. */
        struct nd_userns_map maps[] = {{0, POD_ROOT, 2 * BLOCK}, {2 * BLOCK, POD_ROOT + 10 * BLOCK, BLOCK}};
        struct nd_userns_plan plan = {
                .uids = maps, .uid_count = nd_count_of(maps), .gids = maps, .gid_count = nd_count_of(maps)};
        int userns = -EBADF;

        need_root();
        done(nd_userns_make(&plan, &userns));
        return in_child(inside, &userns);
}
