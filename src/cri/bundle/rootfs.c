/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/rootfs.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/vector.h"
#include "cri/bundle/build-mntns.h"
#include "cri/bundle/shifted-layers.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/tree.h"

/* Made in this order; "lower" only for an image without layers, since an overlay needs a lower
 * directory. */
static const char *const parts[] = {"rootfs", "work", "upper", "lower"};

static struct nd_error *make_directories(const struct cri_rootfs_plan *plan) {
        nd_autoclose int directory = -EBADF;

        nd_try(nd_dir_open(AT_FDCWD, plan->directory, &directory));
        for (size_t i = 0; i < nd_count_of(parts); i++)
                if (plan->count == 0 || !nd_streq(parts[i], "lower"))
                        nd_try(nd_dir_make(directory, parts[i], 0755));
        /* it is the container's root directory */
        return nd_dir_give(directory, "upper", plan->uid, plan->gid, 0755);
}

/* Mounts an idmapped clone of the layers over them, in this process's mount namespace. */
static struct nd_error *map_layers(const char *layers, int userns) {
        nd_autoclose int tree = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, layers, false, &tree));
        nd_try(nd_error_wrap(nd_mount_idmap(tree, userns, false),
                             "the image store at '%s' must be on a filesystem that can be idmapped (ext4, xfs, btrfs, tmpfs)",
                             layers));
        return nd_mount_attach(tree, AT_FDCWD, layers);
}

/* Idmaps the layers or, in a node that cannot, makes shifted copies of them. */
static struct nd_error *map_or_copy(const struct cri_shifted_layers *plan, int userns, bool *ret_copied) {
        nd_autoerror struct nd_error *error = map_layers(plan->layers, userns);
        int number = nd_error_errno(error);

        *ret_copied = (number == EPERM || number == EINVAL) && plan->shift.count > 0;
        return *ret_copied ? cri_shifted_layers_make(plan) : nd_take_ptr(error);
}

struct options {
        struct nd_mount_fs_option *items;
        size_t count;
        size_t capacity;
};

static void options_done(struct options *list) {
        nd_vector_each (option, list) {
                free((char *) option->value);
        }
        nd_vector_done(list);
}

static void add(struct options *list, const char *key, char *value) {
        nd_vector_push(list, ((struct nd_mount_fs_option) {.key = key, .value = value}));
}

/* Overlay expects the topmost layer first. */
static void add_layers(struct options *list, const struct cri_shifted_layers *plan, bool copied) {
        char hex[ND_DIGEST_HEX];

        for (size_t i = plan->count; i-- > 0;)
                add(list, "lowerdir+",
                    copied ? cri_shifted_layers_path(plan, i)
                           : nd_format("%s/%s/fs", plan->layers, nd_digest_hex(&plan->chains[i], hex)));
}

struct nd_error *cri_rootfs_build(const struct cri_rootfs_plan *plan, int *ret_fd) {
        const struct cri_shifted_layers layers = {.layers = plan->layers,
                                                  .chains = plan->chains,
                                                  .count = plan->count,
                                                  .shift = {.uid = plan->uid, .gid = plan->gid, .count = plan->ids}};
        nd_cleanup(options_done) struct options list = {};
        nd_cleanup(cri_build_mntns_leave) int home = -EBADF;
        bool copied = false;

        nd_try(make_directories(plan));
        nd_try(cri_build_mntns_enter(plan->build_mntns, &home));
        if (plan->userns >= 0)
                nd_try(map_or_copy(&layers, plan->userns, &copied));
        add_layers(&list, &layers, copied);
        if (plan->count == 0)
                add(&list, "lowerdir+", nd_format("%s/lower", plan->directory));
        add(&list, "upperdir", nd_format("%s/upper", plan->directory));
        add(&list, "workdir", nd_format("%s/work", plan->directory));
        add(&list, "userxattr", nullptr);
        add(&list, "volatile", nullptr);
        if (plan->label)
                add(&list, "context", nd_strdup(plan->label));
        return nd_error_wrap(nd_mount_fs_make("overlay", list.items, list.count, 0, ret_fd),
                             "mount the root filesystem in '%s'", plan->directory);
}

struct nd_error *cri_rootfs_merge(const struct cri_rootfs_merge_plan *plan, int *ret_fd) {
        const struct cri_shifted_layers layers = {
                .layers = plan->layers, .chains = plan->chains, .count = plan->count, .shift = plan->shift};
        nd_cleanup(options_done) struct options list = {};
        bool copied = false;

        if (plan->userns >= 0)
                nd_try(map_or_copy(&layers, plan->userns, &copied));
        add_layers(&list, &layers, copied);
        /* never clone the layer itself, even if it is the only one */
        add(&list, "lowerdir+", nd_strdup(plan->empty));
        add(&list, "userxattr", nullptr);
        return nd_mount_fs_make("overlay", list.items, list.count, MOUNT_ATTR_RDONLY, ret_fd);
}

const char *cri_rootfs_find_owner(int tree, uid_t *ret) {
        static const char *const candidates[] = {"etc/passwd", "bin", "usr", "etc"};
        struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

        for (size_t i = 0; i < nd_count_of(candidates); i++) {
                nd_autoclose int fd = nd_sys->openat2(tree, candidates[i], &how, sizeof how);
                struct stat st;

                if (fd < 0 || fstat(fd, &st) < 0)
                        continue;
                *ret = st.st_uid;
                return candidates[i];
        }
        return nullptr;
}

struct nd_error *cri_rootfs_attach(int tree, const char *directory) {
        nd_autofree char *path = nd_format("%s/rootfs", directory);

        return nd_mount_attach(tree, AT_FDCWD, path);
}

struct nd_error *cri_rootfs_undo(const char *directory) {
        nd_autofree char *root = nd_format("%s/rootfs", directory);
        nd_autoerror struct nd_error *gone = nullptr;
        nd_autoclose int fd = -EBADF;

        nd_try(nd_mount_detach(root));
        gone = nd_dir_open(AT_FDCWD, directory, &fd);
        if (gone)
                return nd_error_errno(gone) == ENOENT ? nullptr : nd_take_ptr(gone);
        for (size_t i = 0; i < nd_count_of(parts); i++)
                nd_try(nd_error_wrap(nd_tree_remove(fd, parts[i]), "remove the root filesystem in '%s'", directory));
        return nullptr;
}
