/* SPDX-License-Identifier: Apache-2.0 */
/* pins.c - see pins.h
 *
 * Theory of operation
 *   The pins' mount namespace consists of one tmpfs with /<sandbox>/<name>, each a mount of a
 *   namespace's file. It is made once per boot: a worker unshares, changes its root to the new
 *   tmpfs and detaches everything else. We mount the worker's mount namespace at <run>/pins/mnt,
 *   and it needs no process any more. The kernel accepts such a mount only where mounts do not
 *   propagate to other namespaces, so <run>/pins is a private mount of itself. Both cost two lines
 *   in the mount table per node, not per pod.
 *   The mount is also unbindable: a volume that contains our directories (hostPath: /) is cloned
 *   without it. Otherwise the kernel would refuse to move the clone into a container, and crun
 *   would then mount the volume without its ID mapping.
 *   The daemon keeps a descriptor of the tmpfs's root. A path through it
 *   (/proc/<daemon>/fd/N/<sandbox>/ipc) can be opened by any process that may access our /proc
 *   directory, such as crun, without being in that mount namespace.
 * Owns       two descriptors. The pins belong to their sandboxes and outlive the daemon. */
#include "cri/namespace/pins.h"

#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/clock.h"
#include "cri/core/config.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/namespace.h"
#include "sys/worker.h"

static constexpr uint64_t deadline_us = 10 * ND_SECOND_US;

struct cri_pins {
        int mount_namespace;
        int root;
};

struct birth {
        const char *directory;
        int cpu; /* run there; -1 = on any CPU */
};

static void move_to_cpu(int cpu) {
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        if (cpu >= 0) {
                CPU_SET(cpu, &cpus);
                (void) sched_setaffinity(0, sizeof cpus, &cpus);
        }
}

/* Runs in a worker: returns a new mount namespace. */
static struct nd_error *make_namespace(void *argument, int *ret_fd) {
        const struct birth *birth = argument;
        nd_autoclose int fd = -EBADF;

        move_to_cpu(birth->cpu);
        nd_try(nd_mount_namespace_private());
        fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return nd_error_new(ND_INTERNAL, errno, "open our mount namespace");
        nd_try(nd_mount_namespace_empty(birth->directory));
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *enter(int mount_namespace) {
        if (nd_sys->setns(mount_namespace, CLONE_NEWNS) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the pins' mount namespace");
        return nullptr;
}

/* Runs in a worker: returns the root of the namespace. */
static struct nd_error *open_root(void *argument, int *ret_fd) {
        nd_try(enter(*(const int *) argument));
        *ret_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return *ret_fd < 0 ? nd_error_new(ND_INTERNAL, errno, "open the root of the pins") : nullptr;
}

static bool is_mount(const char *path) {
        struct statx status;

        return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &status) == 0 &&
               status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Mounts a directory on itself, private and unbindable. */
static struct nd_error *make_private(const char *directory) {
        struct mount_attr attributes = {.propagation = MS_UNBINDABLE};
        nd_autoclose int tree = -EBADF;

        if (!is_mount(directory)) {
                nd_try(nd_mount_clone(AT_FDCWD, directory, false, &tree));
                nd_try(nd_mount_attach(tree, AT_FDCWD, directory));
        }
        if (nd_sys->mount_setattr(AT_FDCWD, directory, 0, &attributes, sizeof attributes) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "make the mount at '%s' private and unbindable",
                                    directory);
        return nullptr;
}

static bool is_namespace(int fd) {
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

/* To prevent reference cycles, the kernel mounts a mount namespace only inside an older one.
 * Since Linux 6.18 it compares ages by a number that grows per CPU, so a newer namespace may
 * look older; never on the CPU that ours was made on. */
static struct nd_error *make(const char *directory, const char *path, int *ret_fd) {
        nd_autoerror struct nd_error *error = nullptr;
        cpu_set_t cpus;

        nd_try(nd_file_unlink(AT_FDCWD, path)); /* left by a daemon that was killed here */
        if (sched_getaffinity(0, sizeof cpus, &cpus) < 0)
                CPU_ZERO(&cpus);
        for (int cpu = -1; cpu < CPU_SETSIZE; cpu++) { /* first on any CPU */
                struct birth birth = {.directory = directory, .cpu = cpu};
                nd_autoclose int fd = -EBADF;

                if (cpu >= 0 && !CPU_ISSET(cpu, &cpus))
                        continue;
                nd_try(nd_worker_run("make a mount namespace for pins", make_namespace, &birth, deadline_us, &fd));
                nd_error_done(&error);
                error = nd_namespace_pin(fd, AT_FDCWD, path);
                if (!error) {
                        *ret_fd = nd_take_fd(fd);
                        return nullptr;
                }
                if (nd_error_errno(error) != ELOOP && nd_error_errno(error) != EINVAL)
                        break;
        }
        return nd_take_ptr(error);
}

struct nd_error *cri_pins_open(const struct cri_config *config, struct cri_pins **ret) {
        nd_autofree char *directory = nd_format("%s/pins", config->run), *path = nd_format("%s/mnt", directory);
        nd_autoclose int fd = -EBADF, root = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, config->run, 0711));
        nd_try(nd_dir_make(AT_FDCWD, directory, 0700));
        nd_try(make_private(directory));
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || !is_namespace(fd)) {
                nd_close_fd(&fd);
                nd_try(make(directory, path, &fd));
        }
        nd_try(nd_worker_run("open the pins", open_root, &fd, deadline_us, &root));
        *ret = nd_new(struct cri_pins);
        **ret = (struct cri_pins) {.mount_namespace = nd_take_fd(fd), .root = nd_take_fd(root)};
        return nullptr;
}

void cri_pins_free(struct cri_pins *pins) {
        if (!pins)
                return;
        nd_close_fd(&pins->mount_namespace);
        nd_close_fd(&pins->root);
        free(pins);
}

char *cri_pins_path(const struct cri_pins *pins, const char *sandbox_id, const char *name) {
        return nd_format("/proc/%d/fd/%d/%s/%s", (int) getpid(), pins->root, sandbox_id, name);
}

/* ---- in workers ---- */

/* Returns to the caller's mount namespace. A failure is ignored: the worker is about to exit. */
static void go_home(int *home) {
        if (*home >= 0)
                (void) nd_sys->setns(*home, CLONE_NEWNS);
        nd_close_fd(home);
}

static struct nd_error *visit(const struct cri_pins *pins, int *ret_home) {
        nd_autoclose int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (home < 0)
                return nd_error_new(ND_INTERNAL, errno, "open our mount namespace");
        nd_try(enter(pins->mount_namespace));
        *ret_home = nd_take_fd(home);
        return nullptr;
}

struct nd_error *cri_pins_put(const struct cri_pins *pins, const char *sandbox_id, const char *const *names, const int *fds,
                              size_t count) {
        nd_cleanup(go_home) int home = -EBADF;

        nd_try(visit(pins, &home));
        nd_try(nd_dir_make(AT_FDCWD, sandbox_id, 0700));
        for (size_t i = 0; i < count; i++) {
                nd_autofree char *path = nd_format("/%s/%s", sandbox_id, names[i]);

                if (fds[i] >= 0)
                        nd_try(nd_namespace_pin(fds[i], AT_FDCWD, path));
        }
        return nullptr;
}

struct nd_error *cri_pins_drop(const struct cri_pins *pins, const char *sandbox_id, const char *const *names, size_t count) {
        nd_cleanup(go_home) int home = -EBADF;
        nd_autofree char *directory = nd_format("/%s", sandbox_id);

        nd_try(visit(pins, &home));
        for (size_t i = 0; i < count; i++) {
                nd_autofree char *path = nd_format("/%s/%s", sandbox_id, names[i]);

                nd_try(nd_namespace_unpin(path));
        }
        if (nd_sys->unlinkat(AT_FDCWD, directory, AT_REMOVEDIR) < 0 && errno != ENOENT)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s' from the pins", directory);
        return nullptr;
}
