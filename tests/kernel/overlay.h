/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.h - a root filesystem as nodens builds it: an overlay whose lower layer is idmapped
 *
 * Shared by the tests that show it, hand it over and run a container on it. */
#pragma once

#include "evidence.h"
#include "sys/mount.h"

struct rootfs {
        char *base;  /* a directory on a real filesystem, with these in it: */
        char *layer; /* as unpacked from an image: owners as the container sees them */
        char *upper, *work;
        /* Where the idmapped layer is attached, in the builder's mount namespace only. */
        char *stage;
        char *target;
        int userns;
};

static inline struct rootfs rootfs_make(int userns) {
        char *base = scratch_directory("/var/tmp");
        struct rootfs r = {
                .base = base,
                .layer = nd_format("%s/layer", base),
                .upper = nd_format("%s/upper", base),
                .work = nd_format("%s/work", base),
                .stage = nd_format("%s/stage", base),
                .target = nd_format("%s/rootfs", base),
                .userns = userns,
        };
        char *made[] = {r.layer, r.upper, r.work, r.stage, r.target};

        step(chmod(base, 0755) == 0);
        for (size_t i = 0; i < nd_count_of(made); i++)
                step(mkdir(made[i], 0755) == 0);
        /* The root directory of the overlay belongs to the pod's root. */
        step(chown(r.upper, POD_ROOT, POD_ROOT) == 0);
        return r;
}

/* The builder's part, in a mount namespace of its own. The result is a detached overlay. */
static inline struct nd_error *rootfs_build(void *argument, int *ret_fd) {
        struct rootfs *r = argument;
        nd_autoclose int tree = -EBADF;
        struct nd_mount_fs_option options[] = {{"lowerdir+", r->stage},
                                               {"upperdir", r->upper},
                                               {"workdir", r->work},
                                               {"userxattr", nullptr},
                                               {"volatile", nullptr}};

        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_clone(AT_FDCWD, r->layer, false, &tree));
        nd_try(nd_mount_idmap(tree, r->userns, false));
        nd_try(nd_mount_attach(tree, AT_FDCWD, r->stage));
        return nd_mount_fs_make("overlay", options, nd_count_of(options), 0, ret_fd);
}

static inline void rootfs_remove(struct rootfs *r) {
        nd_autofree char *command = nd_format("rm -rf '%s'", r->base);

        (void) umount2(r->target, MNT_DETACH);
        step(system(command) == 0);
}

/* Lines of our mount table that have a text in them; nullptr counts all. */
static inline size_t count_mounts(const char *text) {
        FILE *file = fopen("/proc/self/mountinfo", "re");
        size_t count = 0, capacity = 0;
        char *line = nullptr;

        step(file);
        while (getline(&line, &capacity, file) > 0)
                count += !text || strstr(line, text);
        free(line);
        (void) fclose(file);
        return count;
}
