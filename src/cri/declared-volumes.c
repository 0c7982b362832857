/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/declared-volumes.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cri/volumes.h"
#include "sys/file.h"
#include "sys/tree-copy.h"
#include "sys/tree.h"

enum {
        VOLUMES_MOST = 100, /* of one image */
};

void declared_volumes_done(declared_volumes *list) {
        nd_vector_each (volume, list) {
                free(volume->destination);
                free(volume->source);
        }
        nd_vector_done(list);
}

/* ---- where ---- */

static bool is_below(const char *path, const char *directory) {
        size_t length = strlen(directory);

        return nd_has_prefix(path, directory) && (path[length] == '/' || path[length] == '\0');
}

static bool is_kernels(const char *path) {
        static const char *const places[] = {"/proc", "/sys", "/dev"};

        for (size_t i = 0; i < nd_count_of(places); i++)
                if (is_below(path, places[i]))
                        return true;
        return false;
}

static bool is_mounted(const struct container_request *request, const char *destination) {
        nd_vector_each (mount, &request->mounts) {
                nd_autofree char *path = volumes_clean_path(mount->container_path);

                if (nd_streq(path, destination))
                        return true;
        }
        return false;
}

static bool is_listed(const declared_volumes *list, const char *destination) {
        nd_vector_each (volume, list) {
                if (nd_streq(volume->destination, destination))
                        return true;
        }
        return false;
}

/* The path behind all links, as the kernel tells it of a descriptor in a tree that is attached nowhere: from the tree's root. */
static struct nd_error *path_behind(int fd, char **ret) {
        nd_autofree char *link = nd_format("/proc/self/fd/%d", fd);
        char path[PATH_MAX];
        ssize_t n = readlink(link, path, sizeof path);

        if (n <= 0 || n >= PATH_MAX)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : ENAMETOOLONG, "follow its links");
        path[n] = '\0';
        free(*ret);
        *ret = volumes_clean_path(path);
        return nullptr;
}

/* ret_fd stays -EBADF where the image has nothing. */
static struct nd_error *find_in_image(int tree, const char *path, char **ret_destination, int *ret_fd) {
        struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
        int fd;

        *ret_destination = volumes_clean_path(path);
        fd = nd_sys->openat2(tree, path, &how, sizeof how);
        if (fd < 0 && errno == ENOENT)
                return nullptr;
        if (fd < 0)
                return nd_error_new(errno == ENOTDIR ? ND_INVALID : nd_code_of_errno(errno), errno,
                                    "what the image has there cannot be used as a directory");
        *ret_fd = fd;
        return path_behind(fd, ret_destination);
}

/* ---- making ---- */

static struct nd_error *fill(const struct declared_volumes_plan *plan, int image, const char *source) {
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, source, 0700));
        if (image < 0)
                return nd_dir_give(AT_FDCWD, source, plan->uid, plan->gid, 0755);
        nd_try(nd_dir_open(AT_FDCWD, source, &fd));
        return nd_tree_copy(image, fd);
}

static struct nd_error *make_one(const struct declared_volumes_plan *plan, const char *path, declared_volumes *ret) {
        nd_autofree char *clean = volumes_clean_path(path), *destination = nullptr;
        struct declared_volume volume = {};
        nd_autoclose int image = -EBADF;

        if (is_mounted(plan->request, clean))
                return nullptr;
        nd_try(find_in_image(plan->tree, clean, &destination, &image));
        if (nd_streq(destination, "/"))
                return nd_error_new(ND_INVALID, 0, "a volume cannot be the whole root filesystem");
        if (is_kernels(destination))
                return nd_error_new(ND_INVALID, 0, "'%s' belongs to the kernel, and no image may put something there",
                                    destination);
        if (is_mounted(plan->request, destination) || is_listed(ret, destination))
                return nullptr;
        if (ret->count >= VOLUMES_MOST)
                return nd_error_new(ND_EXHAUSTED, 0, "an image may have at most %d volumes", VOLUMES_MOST);
        volume.destination = nd_take_ptr(destination);
        volume.source = nd_format("%s/volumes/%zu", plan->directory, ret->count);
        nd_vector_push(ret, volume);
        return fill(plan, image, volume.source);
}

struct nd_error *declared_volumes_make(const struct declared_volumes_plan *plan, declared_volumes *ret) {
        nd_autofree char *directory = nd_format("%s/volumes", plan->directory);

        if (plan->image->volumes.count == 0)
                return nullptr;
        nd_try(nd_dir_make(AT_FDCWD, directory, 0711));
        nd_vector_each (path, &plan->image->volumes) {
                nd_try(nd_error_wrap(make_one(plan, *path, ret), "the volume '%s' that the image declares", *path));
        }
        return nullptr;
}

struct nd_error *declared_volumes_undo(const char *directory) {
        nd_autofree char *path = nd_format("%s/volumes", directory);

        return nd_tree_remove(AT_FDCWD, path);
}
