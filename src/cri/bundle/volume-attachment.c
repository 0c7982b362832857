/* SPDX-License-Identifier: Apache-2.0 */
/* volume-attachment.c - see volume-attachment.h
 *
 * Theory of operation
 *   The mount point of a volume is resolved inside the root filesystem, following the image's links
 *   there, and the volume is attached to its descriptor. A volume that others write to may already
 *   be on the way: what they replace leads to another place in the same container, never out of it.
 *   A child that is the pod's root and has no other privilege creates missing mount points, so they
 *   get the pod's IDs also on a mapped volume. A read-only volume is read-only as soon as it is
 *   attached: no mount point is created in it for later mounts. The root becomes read-only last,
 *   when all mount points exist.
 * Invariant  only a Bidirectional volume is a peer of one of the host's mounts. It is never
 *            unmounted, which could propagate to the host: it ends with the mount namespace. */
#include "cri/bundle/volume-attachment.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cri/core/container-path.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/tree.h"
#include "sys/worker.h"

static constexpr uint64_t deadline_us = 30 * ND_SECOND_US;

enum {
        LINKS_MOST = 20, /* dangling links on the way to one mount */
};

void cri_volume_attachment_done(struct cri_volume_attachment *attachment) {
        nd_strings_done(&attachment->covered);
        nd_vector_done(&attachment->declared); /* the caller's list owns the entries */
        free(attachment->directory);
        nd_close_fd(&attachment->place);
        nd_close_fd(&attachment->root);
}

char *cri_volume_attachment_root(const struct cri_volume_attachment *attachment, const char *directory) {
        return nd_format(attachment->root >= 0 ? "%s/mounts/rootfs" : "%s/rootfs", directory);
}

struct nd_error *cri_volume_attachment_begin(struct cri_volume_attachment *attachment, const char *directory, int userns,
                                             int *root) {
        nd_autofree char *path = nd_format("%s/mounts", directory);
        nd_autoclose int plain = -EBADF;

        attachment->directory = nd_strdup(directory);
        attachment->userns = userns;
        /* the OCI runtime traverses it as the pod's root */
        nd_try(nd_dir_make(AT_FDCWD, path, 0711));
        nd_try(nd_mount_clone(AT_FDCWD, path, false, &attachment->place));
        nd_try(nd_mount_attach(attachment->place, AT_FDCWD, path));
        nd_try(nd_mount_propagation(attachment->place, MS_PRIVATE, false));
        if (userns < 0)
                return nullptr;
        nd_try(nd_dir_make(attachment->place, "rootfs", 0755));
        nd_try(nd_mount_attach(*root, attachment->place, "rootfs"));
        nd_try(nd_mount_clone(attachment->place, "rootfs", false, &plain));
        attachment->root = nd_take_fd(*root);
        *root = nd_take_fd(plain);
        return nullptr;
}

/* ---- mount points ---- */

struct point {
        char *path;
        bool directory;
};
struct points {
        struct point *items;
        size_t count;
        size_t capacity;
};

static void points_done(struct points *list) {
        nd_vector_each (point, list) {
                free(point->path);
        }
        nd_vector_done(list);
}

static int open_inside(int root, const char *path, int flags) {
        struct open_how how = {.flags = (uint64_t) flags | O_PATH | O_CLOEXEC,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

        return nd_sys->openat2(root, path, &how, sizeof how);
}

static struct nd_error *make_last(int parent, const char *name, bool directory) {
        nd_autoclose int fd = -EBADF;

        if (directory)
                return nd_sys->mkdirat(parent, name, 0755) == 0
                               ? nullptr
                               : nd_error_new(nd_error_code_of(errno), errno, "create the directory '%s'", name);
        fd = nd_sys->openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd >= 0 ? nullptr : nd_error_new(nd_error_code_of(errno), errno, "create the file '%s'", name);
}

/* Opens or creates one part of the path. For a dangling link, *ret_fd stays unchanged and
 * *ret_path is the path to continue with. */
static struct nd_error *enter(int root, int parent, const char *prefix, const char *rest, bool directory, int *ret_fd,
                              char **ret_path) {
        const char *name = strrchr(prefix, '/') ? strrchr(prefix, '/') + 1 : prefix;
        char target[PATH_MAX];
        ssize_t n;

        *ret_fd = open_inside(root, prefix, 0);
        if (*ret_fd >= 0 || errno != ENOENT)
                return *ret_fd >= 0 ? nullptr
                                    : nd_error_new(nd_error_code_of(errno), errno, "open '%s' in the root filesystem", prefix);
        n = readlinkat(parent, name, target, sizeof target);
        if (n >= 0 && n < PATH_MAX) {
                *ret_path = target[0] == '/' ? nd_format("%.*s/%s", (int) n, target, rest)
                                             : nd_format("%.*s/%.*s/%s", (int) (name - prefix), prefix, (int) n, target, rest);
                return nullptr;
        }
        nd_try(make_last(parent, name, directory));
        *ret_fd = open_inside(root, prefix, 0);
        return *ret_fd >= 0 ? nullptr
                            : nd_error_new(nd_error_code_of(errno), errno, "open '%s' in the root filesystem", prefix);
}

/* Walks down from the root and creates what is missing, also behind links, always inside the
 * root. */
static struct nd_error *make_point(int root, const char *path, bool directory, unsigned links) {
        nd_autoclose int parent = open_inside(root, ".", O_DIRECTORY);
        const char *at = path;

        if (links > LINKS_MOST || strlen(path) >= PATH_MAX)
                return nd_error_new(ND_INVALID, ELOOP, "too many symbolic links in the path of a mount point");
        while (*(at += strspn(at, "/"))) {
                const char *end = at + strcspn(at, "/"), *rest = end + strspn(end, "/");
                nd_autofree char *prefix = nd_strndup(path, (size_t) (end - path)), *other = nullptr;
                int fd = -EBADF;

                nd_try(enter(root, parent, prefix, rest, *rest || directory, &fd, &other));
                if (other)
                        return make_point(root, other, directory, links + 1);
                nd_close_fd(&parent);
                parent = fd;
                at = end;
        }
        return nullptr;
}

struct making {
        const struct cri_volume_attachment *attachment;
        const struct points *points;
};

/* Runs in a worker, which becomes the pod's root. */
static struct nd_error *make_points(void *argument, [[maybe_unused]] int *ret_fd) {
        const struct making *making = argument;

        (void) umask(022);
        nd_try(nd_userns_join(making->attachment->userns));
        nd_vector_each (point, making->points) {
                nd_autoerror struct nd_error *error = make_point(making->attachment->root, point->path, point->directory, 0);

                if (nd_error_errno(error) == EROFS)
                        return nd_error_new(ND_INVALID, EROFS, "'%s' does not exist, and cannot be made in a read-only volume",
                                            point->path);
                if (error)
                        return nd_take_ptr(error);
        }
        return nullptr;
}

/* Creates the missing ones, if any. */
static struct nd_error *provide(const struct cri_volume_attachment *attachment, struct points *list) {
        nd_cleanup(points_done) struct points missing = {};

        nd_vector_each (point, list) {
                nd_autoclose int fd = open_inside(attachment->root, point->path, 0);

                if (fd < 0 && errno == ENOENT)
                        nd_vector_push(&missing,
                                       ((struct point) {.path = nd_take_ptr(point->path), .directory = point->directory}));
        }
        if (missing.count == 0)
                return nullptr;
        return nd_worker_run("create mount points", make_points,
                             &(struct making) {.attachment = attachment, .points = &missing}, deadline_us, nullptr);
}

static struct nd_error *find_place(const struct cri_volume_attachment *attachment, const char *destination, bool directory,
                                   int *ret_fd) {
        nd_cleanup(points_done) struct points list = {};
        int fd;

        nd_vector_push(&list, ((struct point) {.path = nd_strdup(destination), .directory = directory}));
        nd_try(provide(attachment, &list));
        fd = open_inside(attachment->root, destination, 0);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s' in the root filesystem", destination);
        *ret_fd = fd;
        return nullptr;
}

/* Paths where the OCI runtime mounts something itself, which would cover an earlier mount. */
static bool is_oci_runtimes(const char *path) {
        return nd_streq(path, "/") || nd_streq(path, "") || cri_container_path_within(path, "/dev") ||
               cri_container_path_within(path, "/proc") || cri_container_path_within(path, "/sys");
}

/* The path of a mount point in the container, with the image's links resolved; nullptr if it is
 * outside. The caller frees it. */
static char *path_inside(const struct cri_volume_attachment *attachment, int place) {
        nd_autofree char *link = nd_format("/proc/self/fd/%d", place);
        nd_autofree char *root = nd_format("%s/mounts/rootfs", attachment->directory);
        char path[PATH_MAX];
        ssize_t n = readlink(link, path, sizeof path - 1);

        if (n <= 0)
                return nullptr;
        path[n] = '\0';
        return cri_container_path_within(path, root) ? nd_strdup(path + strlen(root)) : nullptr;
}

static bool is_covered(const struct cri_volume_attachment *attachment, const char *path) {
        nd_vector_each (place, &attachment->covered) {
                if (cri_container_path_within(path, *place))
                        return true;
        }
        return is_oci_runtimes(path);
}

/* ---- attaching ---- */

static struct nd_error *is_directory(int file, bool *ret) {
        struct stat st;

        if (fstat(file, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat the volume");
        *ret = S_ISDIR(st.st_mode);
        return nullptr;
}

/* Sets *ret to whether it was attached: not if the OCI runtime's own mounts would cover it, and
 * not if the OCI runtime binds it. @file: what the tree shows; only the pod can use the tree of a
 * bridged volume. */
static struct nd_error *attach_below_root(struct cri_volume_attachment *attachment, int tree, int file,
                                          const char *destination, bool oci_runtimes, bool *ret) {
        nd_autofree char *path = nullptr;
        nd_autoclose int place = -EBADF;
        bool directory = false;

        *ret = false;
        if (attachment->root < 0 || is_oci_runtimes(destination))
                return nullptr;
        nd_try(is_directory(file, &directory));
        nd_try(find_place(attachment, destination, directory, &place));
        path = path_inside(attachment, place);
        if (oci_runtimes || !path || is_covered(attachment, path)) {
                nd_strings_add(&attachment->covered, path ?: destination);
                return nullptr;
        }
        nd_try(nd_mount_attach(tree, place, ""));
        *ret = true;
        return nullptr;
}

/* Attaches it where the OCI runtime finds it, by a path that only root can change. */
static struct nd_error *attach_for_oci_runtime(const struct cri_volume_attachment *attachment,
                                               const struct cri_volume_visit *visit) {
        nd_autofree char *name = nd_format("%zu", visit->index);
        bool directory = false;

        if (attachment->refuses && (visit->mount->read_only || visit->mount->attributes))
                return nd_error_new(ND_INVALID, 0,
                                    "the OCI runtime must mount it itself, %s, so SYS_ADMIN could %s; %s, drop "
                                    "SYS_ADMIN, or set unlockedReadOnlyVolumes in the configuration of nodens-cri",
                                    visit->mount->propagation == MOUNT_PRIVATE ? "as everything in /dev, /proc or /sys"
                                                                               : "because of its mount propagation",
                                    visit->mount->read_only ? "make it writable" : "change its mount options",
                                    visit->mount->propagation == MOUNT_PRIVATE ? "mount it elsewhere"
                                                                               : "set its mountPropagation to None");
        nd_try(is_directory(visit->volume->file, &directory));
        if (directory)
                nd_try(nd_dir_make(attachment->place, name, 0700));
        else
                nd_try(nd_file_write(attachment->place, name, "", 0, 0600));
        nd_try(nd_mount_attach(visit->volume->tree, attachment->place, name));
        visit->volume->source = nd_format("%s/mounts/%s", attachment->directory, name);
        return nullptr;
}

/* Volumes below our own directories: a declared volume, a mounted image. */
static struct nd_error *attach_own(struct cri_volume_attachment *attachment, const char *source, const char *destination,
                                   bool *ret) {
        nd_autoclose int tree = -EBADF;

        *ret = false;
        if (attachment->root < 0)
                return nullptr;
        nd_try(nd_mount_clone(AT_FDCWD, source, false, &tree));
        nd_try(nd_mount_propagation(tree, MS_PRIVATE, false));
        return attach_below_root(attachment, tree, tree, destination, false, ret);
}

static struct nd_error *attach_volume(struct cri_volume_attachment *attachment, const struct cri_volume_visit *visit) {
        struct cri_volume *volume = visit->volume;
        bool attached = false;

        if (*visit->mount->image) {
                nd_try(attach_own(attachment, volume->source, visit->destination, &attached));
                if (attached)
                        free(nd_take_ptr(volume->source));
                return nullptr;
        }
        nd_try(attach_below_root(attachment, volume->tree, volume->file, visit->destination,
                                 visit->mount->propagation != MOUNT_PRIVATE, &attached));
        if (!attached)
                return attach_for_oci_runtime(attachment, visit);
        if (!visit->mount->read_only)
                return nullptr;
        attachment->read_only = true;
        return nd_mount_set(volume->tree, MOUNT_ATTR_RDONLY, false);
}

static struct nd_error *attach(const struct cri_volume_visit *visit, void *userdata) {
        struct cri_volume_attachment *attachment = userdata;
        bool attached = false;

        if (!visit->declared)
                return nd_error_wrap(attach_volume(attachment, visit), "volume at '%s'", visit->mount->container_path);
        nd_try(nd_error_wrap(attach_own(attachment, visit->declared->source, visit->destination, &attached),
                             "volume '%s' declared by the image", visit->destination));
        if (!attached)
                nd_vector_push(&attachment->declared, *visit->declared);
        return nullptr;
}

struct nd_error *cri_volume_attachment_add_volumes(struct cri_volume_attachment *attachment,
                                                   const struct cri_container_request *request,
                                                   const struct cri_volumes *found,
                                                   const struct cri_declared_volumes *declared) {
        return volumes_each(request, found, declared, attach, attachment);
}

struct nd_error *cri_volume_attachment_add_sys(struct cri_volume_attachment *attachment) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int tree = -EBADF, place = -EBADF;

        error = nd_mount_clone(AT_FDCWD, "/sys", false, &tree);
        if (error)
                return nd_error_errno(error) == EINVAL ? nullptr : nd_take_ptr(error);
        nd_try(nd_mount_propagation(tree, MS_PRIVATE, false));
        nd_try(nd_mount_set(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, false));
        nd_try(find_place(attachment, "/sys", true, &place));
        nd_try(nd_mount_attach(tree, place, ""));
        attachment->sys = true;
        return nullptr;
}

/* ---- the end ---- */

static bool mounts_file(const struct nd_spec_mount *mount) {
        struct stat st;

        return mount->source && mount->source[0] == '/' && stat(mount->source, &st) == 0 && !S_ISDIR(st.st_mode);
}

struct nd_error *cri_volume_attachment_finish(struct cri_volume_attachment *attachment, const struct nd_spec *spec) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_cleanup(points_done) struct points list = {};

        if (attachment->root < 0 || (!spec->read_only_root && !attachment->read_only))
                return nullptr;
        nd_vector_each (mount, &spec->mounts) {
                bool nested = is_oci_runtimes(mount->destination) && strchr(mount->destination + 1, '/');

                if (!nested)
                        nd_vector_push(&list, ((struct point) {.path = nd_strdup(mount->destination),
                                                               .directory = !mounts_file(mount)}));
        }
        if (spec->process.directory)
                nd_vector_push(&list, ((struct point) {.path = nd_strdup(spec->process.directory), .directory = true}));
        error = provide(attachment, &list);
        if (nd_error_errno(error) == EROFS)
                return nd_take_ptr(error);
        /* The OCI runtime reports other missing mount points. */
        return spec->read_only_root ? nd_mount_set(attachment->root, MOUNT_ATTR_RDONLY, false) : nullptr;
}

struct nd_error *cri_volume_attachment_undo(const char *directory) {
        nd_autofree char *path = nd_format("%s/mounts", directory);

        nd_try(nd_mount_detach(path));
        return nd_tree_remove(AT_FDCWD, path);
}
