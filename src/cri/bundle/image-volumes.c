/* SPDX-License-Identifier: Apache-2.0 */
/* image-volumes.c - see image-volumes.h
 *
 * Theory of operation
 *   As with a root filesystem, the mapped layers exist only in a copy of the build mount namespace.
 *   The merged tree is attached there first, since a subtree can be cloned only from an attached
 *   mount; the clone is then attached in the host's mount namespace, to which the worker returns.
 * Invariant  no mount that leaves the build mount namespace shares a superblock with the store:
 *            the container gets an overlay without an upper directory. */
#include "cri/bundle/image-volumes.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/bundle/build-mntns.h"
#include "cri/bundle/rootfs.h"
#include "oci/store.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/tree.h"

void cri_image_volumes_done(struct cri_image_volumes *list) {
        nd_vector_each (volume, list) {
                free(volume->chains);
        }
        nd_vector_done(list);
}

static struct nd_error *find_one(struct nd_oci_store *store, const struct cri_mount_request *mount,
                                 struct cri_image_volume *ret) {
        const struct nd_image *image = nullptr;

        if (!mount->read_only)
                return nd_error_new(ND_INVALID, 0, "an image can only be mounted read-only");
        nd_try(nd_oci_store_find(store, mount->image, &image));
        if (!image)
                return nd_error_new(ND_NOT_FOUND, 0, "image '%s' not found on this node: pull it first", mount->image);
        if (image->layer_count == 0)
                return nd_error_new(ND_PRECONDITION, 0, "image '%s' has no layers, so there is nothing to mount",
                                    mount->image);
        ret->count = image->layer_count;
        ret->chains = nd_calloc(image->layer_count, sizeof *ret->chains);
        nd_image_chains(image, ret->chains);
        return nullptr;
}

struct nd_error *cri_image_volumes_find(struct nd_oci_store *store, const struct cri_container_request *request,
                                        struct cri_image_volumes *ret) {
        for (size_t i = 0; i < request->mounts.count; i++) {
                const struct cri_mount_request *mount = &request->mounts.items[i];

                if (!*mount->image)
                        continue;
                nd_vector_push(ret, ((struct cri_image_volume) {.mount = i}));
                nd_try(nd_error_wrap(find_one(store, mount, &ret->items[ret->count - 1]), "volume at '%s'",
                                     mount->container_path));
        }
        return nullptr;
}

char *cri_image_volumes_path(const char *directory, size_t mount) {
        return nd_format("%s/images/%zu", directory, mount);
}

/* ---- creation ---- */

/* Relative and without "..", as the API requires of a sub path. Links inside the image are
 * handled when it is opened. */
static bool is_plain(const char *path) {
        if (path[0] == '/')
                return false;
        for (; *path; path += strspn(path, "/")) {
                size_t length = strcspn(path, "/");

                if (length == 2 && memcmp(path, "..", 2) == 0)
                        return false;
                path += length;
        }
        return true;
}

/* A detached clone of the tree or of the requested part. */
static struct nd_error *clone_part(const char *place, const char *part, int *ret_fd) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        nd_autoclose int root = -EBADF, fd = -EBADF;

        if (!*part)
                return nd_mount_clone(AT_FDCWD, place, false, ret_fd);
        if (!is_plain(part))
                return nd_error_new(ND_INVALID, 0, "invalid sub path '%s': must be relative, without '..'", part);
        nd_try(nd_dir_open(AT_FDCWD, place, &root));
        fd = nd_sys->openat2(root, part, &how, sizeof how);
        if (fd < 0)
                return nd_error_new(errno == ENOENT ? ND_NOT_FOUND : nd_error_code_of(errno), errno,
                                    "sub path '%s' of the image", part);
        return nd_mount_clone(fd, "", false, ret_fd);
}

/* Makes a mount point of the same type: a part may be a single file. */
static struct nd_error *make_place(int tree, const char *place) {
        struct stat st;

        if (fstat(tree, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "stat the mounted part of the image");
        if (S_ISDIR(st.st_mode))
                return nullptr; /* already a directory */
        if (nd_sys->unlinkat(AT_FDCWD, place, AT_REMOVEDIR) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", place);
        return nd_file_write(AT_FDCWD, place, "", 0, 0600);
}

static struct nd_error *merge(const struct cri_image_volumes_plan *plan, const struct cri_image_volume *volume,
                              const char *place, const char *part, int *ret_fd) {
        nd_autofree char *empty = nd_format("%s/images/.empty", plan->directory);
        nd_cleanup(cri_build_mntns_leave) int home = -EBADF;
        nd_autoclose int tree = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, empty, 0755));
        nd_try(cri_build_mntns_enter(plan->build_mntns, &home));
        nd_try(cri_rootfs_merge(&(struct cri_rootfs_merge_plan) {.layers = plan->layers,
                                                                 .chains = volume->chains,
                                                                 .count = volume->count,
                                                                 .empty = empty,
                                                                 .userns = plan->userns,
                                                                 .shift = plan->shift},
                                &tree));
        nd_try(nd_mount_attach(tree, AT_FDCWD, place));
        return clone_part(place, part, ret_fd);
}

static struct nd_error *make_one(const struct cri_image_volumes_plan *plan, const struct cri_mount_request *mount,
                                 const struct cri_image_volume *volume) {
        nd_autofree char *place = cri_image_volumes_path(plan->directory, volume->mount);
        nd_autoclose int tree = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, place, 0700));
        nd_try(merge(plan, volume, place, mount->image_subpath, &tree));
        if (mount->attributes)
                nd_try(nd_mount_set(tree, mount->attributes, false));
        nd_try(make_place(tree, place));
        return nd_mount_attach(tree, AT_FDCWD, place);
}

struct nd_error *cri_image_volumes_make(const struct cri_image_volumes_plan *plan, const struct cri_container_request *request,
                                        const struct cri_image_volumes *list) {
        nd_autofree char *directory = nd_format("%s/images", plan->directory);

        if (list->count == 0)
                return nullptr;
        nd_try(nd_dir_make(AT_FDCWD, directory, 0700));
        nd_vector_each (volume, list) {
                const struct cri_mount_request *mount = &request->mounts.items[volume->mount];

                nd_try(nd_error_wrap(make_one(plan, mount, volume), "volume of image '%s' at '%s'", mount->image,
                                     mount->container_path));
        }
        return nullptr;
}

/* ---- removal ---- */

static void close_directory(DIR **directory) {
        if (*directory)
                (void) closedir(*directory);
}

struct nd_error *cri_image_volumes_undo(const char *directory) {
        nd_autofree char *path = nd_format("%s/images", directory);
        nd_cleanup(close_directory) DIR *list = opendir(path);
        const struct dirent *entry;

        if (!list)
                return errno == ENOENT ? nullptr : nd_error_new(nd_error_code_of(errno), errno, "read '%s'", path);
        while ((entry = readdir(list))) {
                nd_autofree char *place = nd_format("%s/%s", path, entry->d_name);

                if (entry->d_name[0] != '.')
                        nd_try(nd_mount_detach(place));
        }
        return nd_tree_remove(AT_FDCWD, path);
}
