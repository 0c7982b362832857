/* SPDX-License-Identifier: Apache-2.0 */
/* build-mntns.c - see build-mntns.h
 *
 * Theory of operation
 *   A worker makes it once per daemon: it clones the two directories, enters an empty mount
 *   namespace and attaches them there. The daemon keeps a descriptor of that namespace, so it needs
 *   neither a process nor a pin. It is never modified: every user immediately takes a copy.
 * Owns       the descriptor. */
#include "cri/bundle/build-mntns.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/worker.h"

static constexpr uint64_t deadline_us = 30 * ND_SECOND_US;

struct cri_build_mntns {
        int mount_namespace;
};

struct furniture {
        const char *room;     /* any directory; it becomes the new root */
        const char *paths[2]; /* absolute paths of the directories */
};

/* Makes all directories of a path, from the root. */
static struct nd_error *make_path(const char *path) {
        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                nd_autofree char *above = nd_strndup(path, (size_t) (slash - path));

                nd_try(nd_dir_make(AT_FDCWD, above, 0711));
        }
        return nd_dir_make(AT_FDCWD, path, 0711);
}

/* Runs in a worker: returns the namespace. */
static struct nd_error *furnish(void *argument, int *ret_fd) {
        const struct furniture *furniture = argument;
        nd_autoclose int fd = -EBADF;
        /* closed when the worker exits */
        int trees[nd_count_of(furniture->paths)] = {-EBADF, -EBADF};

        nd_try(nd_mount_namespace_private());
        fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return nd_error_new(ND_INTERNAL, errno, "open our mount namespace");
        for (size_t i = 0; i < nd_count_of(trees); i++)
                nd_try(nd_mount_clone(AT_FDCWD, furniture->paths[i], false, &trees[i]));
        nd_try(nd_mount_namespace_empty(furniture->room));
        for (size_t i = 0; i < nd_count_of(trees); i++) {
                nd_try(make_path(furniture->paths[i]));
                nd_try(nd_mount_attach(trees[i], AT_FDCWD, furniture->paths[i]));
        }
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

struct nd_error *cri_build_mntns_open(const struct cri_config *config, const char *layers, struct cri_build_mntns **ret) {
        nd_autofree char *pods = cri_path_of_pods(config);
        struct furniture furniture = {.room = config->run, .paths = {layers, pods}};
        int fd = -EBADF;

        nd_try(nd_worker_run("make a mount namespace for root filesystems", furnish, &furniture, deadline_us, &fd));
        *ret = nd_new(struct cri_build_mntns);
        (*ret)->mount_namespace = fd;
        return nullptr;
}

void cri_build_mntns_free(struct cri_build_mntns *build_mntns) {
        if (!build_mntns)
                return;
        nd_close_fd(&build_mntns->mount_namespace);
        free(build_mntns);
}

struct nd_error *cri_build_mntns_enter(const struct cri_build_mntns *build_mntns, int *ret_home) {
        nd_autoclose int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (home < 0)
                return nd_error_new(ND_INTERNAL, errno, "open our mount namespace");
        if (!build_mntns) {
                nd_try(nd_mount_namespace_private());
        } else if (nd_sys->setns(build_mntns->mount_namespace, CLONE_NEWNS) < 0 || nd_sys->unshare(CLONE_NEWNS) < 0) {
                return nd_error_new(nd_error_code_of(errno), errno, "enter the mount namespace for root filesystems");
        }
        *ret_home = nd_take_fd(home);
        return nullptr;
}

void cri_build_mntns_leave(int *home) {
        if (*home >= 0 && nd_sys->setns(*home, CLONE_NEWNS) < 0)
                _exit(EXIT_FAILURE);
        nd_close_fd(home);
}
