/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/declared-volumes.h"

#include <string.h>

#include "cri/bundle/image-path.h"
#include "cri/core/container-path.h"
#include "sys/file.h"
#include "sys/tree-copy.h"
#include "sys/tree.h"

enum {
        VOLUMES_MOST = 100, /* of one image */
};

void cri_declared_volumes_done(struct cri_declared_volumes *list) {
        nd_vector_each (volume, list) {
                free(volume->destination);
                free(volume->source);
        }
        nd_vector_done(list);
}

/* ---- places ---- */

/* Whether the pod mounts something there or above, after following links in the image.
 * Containers of the pod write into its volumes: a link in one would move the image's volume. */
static struct nd_error *find_mounted(const struct cri_declared_volumes_plan *plan, const char *destination, bool *ret) {
        *ret = false;
        for (size_t i = 0; i < plan->request->mounts.count && !*ret; i++) {
                nd_cleanup(cri_image_path_done) struct cri_image_path path = {};

                nd_try(cri_image_path_resolve(plan->tree, plan->request->mounts.items[i].container_path, &path));
                *ret = cri_container_path_within(destination, path.resolved);
        }
        return nullptr;
}

static bool is_listed(const struct cri_declared_volumes *list, const char *destination) {
        nd_vector_each (volume, list) {
                if (nd_streq(volume->destination, destination))
                        return true;
        }
        return false;
}

/* ret_fd stays -EBADF if the image has nothing at the path. */
static struct nd_error *open_in_image(int tree, const struct cri_image_path *path, int *ret_fd) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        int fd;

        if (path->missing)
                return nullptr;
        fd = nd_sys->openat2(tree, path->resolved, &how, sizeof how);
        if (fd < 0)
                return nd_error_new(errno == ENOTDIR ? ND_INVALID : nd_error_code_of(errno), errno,
                                    "the image's file at this path cannot be opened as a directory");
        *ret_fd = fd;
        return nullptr;
}

static struct nd_error *check_place(const struct cri_image_path *path) {
        if (path->kernels)
                return nd_error_new(ND_INVALID, 0, "'%s' belongs to the kernel: an image must not mount a volume there",
                                    cri_image_path_is_kernels(path->resolved) ? path->resolved : path->kernels);
        if (path->dangling)
                return nd_error_new(ND_INVALID, 0, "a link leads to '%s', which does not exist in the image", path->resolved);
        if (nd_streq(path->resolved, "/"))
                return nd_error_new(ND_INVALID, 0, "a volume cannot replace the root filesystem");
        return nullptr;
}

/* ---- creation ---- */

static struct nd_error *fill(const struct cri_declared_volumes_plan *plan, int image, const char *source) {
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, source, 0700));
        if (image < 0)
                return nd_dir_give(AT_FDCWD, source, plan->uid, plan->gid, 0755);
        nd_try(nd_dir_open(AT_FDCWD, source, &fd));
        return nd_tree_copy(image, fd);
}

static struct nd_error *make_one(const struct cri_declared_volumes_plan *plan, const char *declared,
                                 struct cri_declared_volumes *ret) {
        nd_cleanup(cri_image_path_done) struct cri_image_path path = {};
        nd_autofree char *clean = cri_container_path_clean(declared);
        struct cri_declared_volume volume = {};
        nd_autoclose int image = -EBADF;
        bool mounted;

        nd_try(cri_image_path_resolve(plan->tree, clean, &path));
        nd_try(find_mounted(plan, path.resolved, &mounted));
        if (mounted || is_listed(ret, path.resolved))
                return nullptr;
        nd_try(check_place(&path));
        nd_try(open_in_image(plan->tree, &path, &image));
        if (ret->count >= VOLUMES_MOST)
                return nd_error_new(ND_EXHAUSTED, 0, "the image declares more than %d volumes", VOLUMES_MOST);
        volume.destination = nd_take_ptr(path.resolved);
        volume.source = nd_format("%s/volumes/%zu", plan->directory, ret->count);
        nd_vector_push(ret, volume);
        return fill(plan, image, volume.source);
}

struct nd_error *cri_declared_volumes_make(const struct cri_declared_volumes_plan *plan, struct cri_declared_volumes *ret) {
        nd_autofree char *directory = nd_format("%s/volumes", plan->directory);

        if (plan->image->volumes.count == 0)
                return nullptr;
        nd_try(nd_dir_make(AT_FDCWD, directory, 0711));
        nd_vector_each (path, &plan->image->volumes) {
                nd_try(nd_error_wrap(make_one(plan, *path, ret), "volume '%s' declared by the image", *path));
        }
        return nullptr;
}

struct nd_error *cri_declared_volumes_undo(const char *directory) {
        nd_autofree char *path = nd_format("%s/volumes", directory);

        return nd_tree_remove(AT_FDCWD, path);
}
