/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - see mounts.h
 *
 * Theory of operation
 *   The host's root moves to /oldroot of a small tmpfs and the node's root is built at /newroot
 *   beside it. At the end only the latter is left: the rest is unmounted and has no path any more.
 *   Sources are read under /oldroot with the user's own rights: root in the node has no others over
 *   files of unmapped IDs.
 *   A read-only bind must hold against root of the node, who may change the flags of mounts in the
 *   node's mount namespace. So the builder makes these binds first, numbered below /locked, in a
 *   mount namespace that belongs to another user namespace. The kernel locks their flags in the
 *   copy that init gets, and in all copies of them (tests/kernel/locked-mount-flags.c). Init mounts
 *   everything that the node may change, tmpfs and the like; these mounts belong to the node's own
 *   user namespace.
 *   proc and sysfs can be mounted only while a complete one is visible in the mount namespace, so
 *   they are mounted before the old root is unmounted.
 *   Mounts are private while the tree is built and shared at the end, so that mounts made by one
 *   daemon of the node propagate to the others; nothing propagates from or to the host. */
#include "rootless/node/mounts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/text.h"
#include "sys/file.h"
#include "sys/mount.h"

#define BASE "/tmp"
#define OLD "/oldroot"
#define NEW "/newroot"
#define LOCKED "/locked"

enum { COPY_BYTES = 1024 * 1024 };

static struct nd_error *mount_at(const char *what, const char *type, const char *target, unsigned long flags,
                                 const char *data) {
        if (nd_sys->mount(what, target, type, flags, data) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "mount %s at '%s'", type ? type : what, target);
        return nullptr;
}

static struct nd_error *make_parents(const char *path) {
        nd_autofree char *copy = nd_strdup(path);

        for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = '\0';
                if (nd_sys->mkdirat(AT_FDCWD, copy, 0755) < 0 && errno != EEXIST)
                        return nd_error_new(nd_error_code_of(errno), errno, "make '%s'", copy);
                *at = '/';
        }
        return nullptr;
}

static struct nd_error *make_directory(const char *path, unsigned mode) {
        nd_try(make_parents(path));
        if (nd_sys->mkdirat(AT_FDCWD, path, mode ? mode : 0755) < 0 && errno != EEXIST)
                return nd_error_new(nd_error_code_of(errno), errno, "make '%s'", path);
        return nullptr;
}

static struct nd_error *write_file(const char *path, const char *bytes, size_t length, unsigned mode) {
        nd_autoclose int fd = -EBADF;

        fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode ? mode : 0644);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s'", path);
        for (size_t done = 0; done < length;) {
                ssize_t n = nd_sys->write(fd, bytes + done, length - done);

                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write '%s'", path);
                done += (size_t) n;
        }
        return nullptr;
}

struct nd_error *rootless_mounts_write_file(const char *path, const char *text) {
        return write_file(path, text, strlen(text), 0644);
}

static struct nd_error *copy_file(const char *source, const char *target, unsigned mode) {
        nd_autofree char *bytes = nullptr;
        size_t length;

        nd_try(nd_file_read(AT_FDCWD, source, COPY_BYTES, &bytes, &length));
        return write_file(target, bytes, length, mode);
}

static struct nd_error *attach(const struct rootless_bind *bind, const char *source, const char *target) {
        struct mount_attr attributes = {.attr_set = bind->read_only ? MOUNT_ATTR_RDONLY : 0, .propagation = MS_PRIVATE};
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, source, true, &tree));
        if (nd_sys->mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof attributes) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set the flags of '%s'", bind->target);
        return nd_mount_attach(tree, AT_FDCWD, target);
}

/* Mounts one entry. The caller handles ENOENT of the source. */
static struct nd_error *mount_entry(const struct rootless_bind *bind, const char *source, const char *target) {
        constexpr unsigned long quiet = MS_NOSUID | MS_NODEV | MS_NOEXEC;
        const char *text = bind->source ? bind->source : "";
        nd_autofree char *options = nullptr;

        nd_try(make_parents(target));
        switch (bind->kind) {
        case BIND_DIRECTORY:
                return make_directory(target, bind->mode);
        case BIND_TMPFS:
                nd_try(make_directory(target, bind->mode));
                options = nd_format("mode=%04o", bind->mode);
                /* Not nodev: devices are bind-mounted into /dev one by one, and a user namespace
                 * cannot create more. */
                return mount_at("tmpfs", "tmpfs", target, MS_NOSUID, options);
        case BIND_TREE:
                nd_try(make_directory(target, 0));
                return attach(bind, source, target);
        case BIND_FILE:
                nd_try(write_file(target, "", 0, 0));
                return attach(bind, source, target);
        case BIND_COPY:
                return copy_file(source, target, bind->mode);
        case BIND_TEXT:
                return write_file(target, text, strlen(text), bind->mode);
        case BIND_SYMLINK:
                if (nd_sys->symlinkat(text, AT_FDCWD, target) < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "make the link '%s'", bind->target);
                return nullptr;
        case BIND_PROC:
                nd_try(make_directory(target, 0));
                return mount_at("proc", "proc", target, quiet, nullptr);
        case BIND_SYSFS:
                nd_try(make_directory(target, 0));
                /* In a container sysfs is read-only, and the kernel does not give us a better
                 * one. */
                if (nd_sys->mount("sysfs", target, "sysfs", quiet, nullptr) == 0)
                        return nullptr;
                return mount_at("sysfs", "sysfs", target, quiet | (errno == EPERM ? MS_RDONLY : 0), nullptr);
        case BIND_CGROUP:
                if (nd_sys->mount("cgroup2", target, "cgroup2", quiet, nullptr) < 0 &&
                    errno != EBUSY) /* EBUSY: already mounted */
                        return nd_error_new(nd_error_code_of(errno), errno, "mount cgroup2 at '%s'", target);
                return nullptr;
        case BIND_DEVPTS:
                nd_try(make_directory(target, 0));
                return mount_at("devpts", "devpts", target, MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620");
        case BIND_MQUEUE:
                nd_try(make_directory(target, 0));
                return mount_at("mqueue", "mqueue", target, quiet, nullptr);
        }
        return nd_error_new(ND_INTERNAL, 0, "invalid entry '%s' in the bind plan", bind->target);
}

/* Returns the source of an entry: the builder's mount for read-only ones, else the host's path. */
static char *source_of(const struct rootless_bindplan *plan, const struct rootless_bind *bind) {
        if (bind->read_only)
                return nd_format(LOCKED "/%zu", (size_t) (bind - plan->items));
        return nd_format(OLD "%s", bind->source ? bind->source : "");
}

static struct nd_error *mount_entries(const struct rootless_bindplan *plan) {
        nd_vector_each (bind, plan) {
                nd_autofree char *source = source_of(plan, bind), *target = nd_format(NEW "%s", bind->target);
                struct nd_error *error;

                if (bind->optional && access(source, F_OK) < 0)
                        continue;
                error = mount_entry(bind, source, target);
                if (error)
                        return nd_error_wrap(error, "mount '%s' in the node", bind->target);
        }
        return nullptr;
}

/* ---- the builder ---- */

/* Turns "/" from the host's root into a tmpfs with OLD, NEW and LOCKED. */
static struct nd_error *move_old_root(void) {
        nd_try(mount_at("/", nullptr, "/", MS_REC | MS_PRIVATE, nullptr));
        nd_try(mount_at("tmpfs", "tmpfs", BASE, MS_NOSUID, "mode=0755"));
        if (chdir(BASE) < 0 || nd_sys->mkdirat(AT_FDCWD, "oldroot", 0755) < 0 ||
            nd_sys->mkdirat(AT_FDCWD, "newroot", 0755) < 0 || nd_sys->mkdirat(AT_FDCWD, "locked", 0755) < 0 ||
            nd_sys->pivot_root(".", "oldroot") < 0 || chdir("/") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "move the host's root aside");
        return nullptr;
}

static struct nd_error *mount_read_only_entries(const struct rootless_bindplan *plan) {
        nd_vector_each (bind, plan) {
                nd_autofree char *source = nd_format(OLD "%s", bind->source ? bind->source : ""), *target = nullptr;
                struct nd_error *error;

                if (!bind->read_only || (bind->optional && access(source, F_OK) < 0))
                        continue;
                target = source_of(plan, bind);
                error = mount_entry(bind, source, target);
                if (error)
                        return nd_error_wrap(error, "mount '%s' in the node", bind->target);
        }
        return nullptr;
}

struct nd_error *rootless_mounts_prepare(const struct rootless_bindplan *plan) {
        mode_t mask = umask(0);
        struct nd_error *error = move_old_root();

        if (!error)
                error = mount_read_only_entries(plan);
        (void) umask(mask);
        return error;
}

/* ---- init ---- */

/* The builder's mounts are locked and can only be unmounted together with the root above them. */
static struct nd_error *enter_new_root(void) {
        if (chdir(NEW) < 0 || nd_sys->pivot_root(".", ".") < 0 || nd_sys->umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the node's root");
        return mount_at("/", nullptr, "/", MS_REC | MS_SHARED, nullptr);
}

struct nd_error *rootless_mounts_enter(const struct rootless_bindplan *plan) {
        mode_t mask = umask(0);
        struct nd_error *error = mount_at("tmpfs", "tmpfs", NEW, MS_NOSUID, "mode=0755");

        if (!error)
                error = mount_entries(plan);
        if (!error)
                error = enter_new_root();
        (void) umask(mask);
        return error;
}
