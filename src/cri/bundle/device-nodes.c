/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/bundle/device-nodes.h"

#include <sys/sysmacros.h>

#include "base/assert.h"
#include "sys/dir.h"
#include "sys/mount.h"

#define PLACE "devices"

static size_t count_own(const struct nd_spec *spec) {
        size_t count = 0;

        nd_vector_each (device, &spec->devices)
                count += device->own;
        return count;
}

/* Not nodev: the container could not open the nodes. */
static struct nd_error *make_filesystem(size_t nodes, const char *label, int *ret_fd) {
        nd_autofree char *inodes = nd_format("%zu", nodes + 2);

        return nd_mount_fs_make("tmpfs",
                                (const struct nd_mount_fs_option[]) {{"source", "nodens-devices"},
                                                                     {"size", "4k"},
                                                                     {"nr_inodes", inodes},
                                                                     {"mode", "0711"},
                                                                     {"context", label}},
                                label ? 5 : 4, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, ret_fd);
}

static bool outside_of(const struct nd_userns_map *map, uint32_t id, uint32_t *ret) {
        if (id < map->inside || id - map->inside >= map->count)
                return false;
        *ret = map->outside + (id - map->inside);
        return true;
}

static struct nd_error *make_node(int tree, const char *name, const struct nd_spec *spec,
                                  const struct nd_spec_device *device) {
        mode_t type = device->type == 'b' ? S_IFBLK : device->type == 'p' ? S_IFIFO : S_IFCHR;
        uint32_t uid, gid;

        if (!outside_of(&spec->uids, device->uid, &uid) || !outside_of(&spec->gids, device->gid, &gid))
                return nd_error_new(
                        ND_INVALID, 0,
                        "device '%.200s' belongs to user %u and group %u, and not both exist in the pod's user namespace",
                        device->path, device->uid, device->gid);
        if (nd_sys->mknodat(tree, name, type, makedev(device->major, device->minor)) < 0 ||
            nd_sys->fchownat(tree, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            nd_sys->fchmodat(tree, name, device->mode & 0777, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "make a node of device '%.200s' for the pod",
                                    device->path);
        return nullptr;
}

struct nd_error *cri_device_nodes_make(const struct cri_volume_attachment *attachment, struct nd_spec *spec) {
        nd_autoclose int tree = -EBADF;
        size_t own = count_own(spec), kept = 0;

        if (own == 0)
                return nullptr;
        nd_assert(attachment->place >= 0);
        nd_try(make_filesystem(own, spec->mount_label, &tree));
        nd_vector_each (device, &spec->devices)
                if (device->own) {
                        nd_autofree char *name = nd_format("%zu", (size_t) (device - spec->devices.items));
                        nd_autofree char *source = nd_format("%s/mounts/" PLACE "/%s", attachment->directory, name);

                        nd_try(make_node(tree, name, spec, device));
                        nd_spec_bind_device(spec, source, device->path);
                }
        nd_vector_each (device, &spec->devices) {
                if (device->own)
                        free(device->path);
                else
                        spec->devices.items[kept++] = *device;
        }
        spec->devices.count = kept;
        nd_try(nd_dir_make(attachment->place, PLACE, 0711));
        return nd_mount_attach(tree, attachment->place, PLACE);
}
