/* SPDX-License-Identifier: Apache-2.0 */
/* An overlay on idmapped lower layers shows and stores the pod's own IDs.
 *
 * What the kernel does: overlayfs takes idmapped mounts as lower layers (lowerdir+, by path) and
 * honours their map: a file of root in the layer belongs to the pod's root in the overlay. New
 * files and copied-up ones land in the upper directory, which is not idmapped, with the pod's real
 * IDs. `userxattr` keeps overlay's marks in user.overlay.*, so that a layer can be unpacked without
 * privilege, and `volatile` leaves out the syncs of an upper directory that never outlives its
 * boot; both go together with idmapped layers.
 *
 * Why nodens needs it: one unpacked copy of an image serves pods with different blocks of IDs, at
 * no cost per file. */
#include <sys/xattr.h>

#include "overlay.h"

static int in_pod(void *argument) {
        struct rootfs *r = argument;

        enter_userns(r->userns);
        step(chdir(r->target) == 0);
        write_file("new", "");
        expect(chmod("old", 0640) == 0, "root of the pod changes a file of the image");
        expect(access("gone", F_OK) < 0 && errno == ENOENT, "a file that a user.overlay mark in the layer hides is hidden");
        expect(unlink("doomed") == 0 && access("doomed", F_OK) < 0, "root of the pod deletes a file of the image");
        return 0;
}

static void show_owner(const struct rootfs *r, const char *where, const char *name, uid_t expected) {
        nd_autofree char *path = nd_format("%s/%s",
                                           strcmp(where, "upper") == 0   ? r->upper
                                           : strcmp(where, "layer") == 0 ? r->layer
                                                                         : r->target,
                                           name);
        struct stat st;

        step(lstat(path, &st) == 0);
        expect(st.st_uid == expected && st.st_gid == expected, "%s/%s belongs to %u", where, name, st.st_uid);
}

/* A whiteout as an unprivileged unpacker makes it: an empty file with a mark, in a directory that
 * is marked to have such. */
static void write_whiteout(const struct rootfs *r) {
        nd_autofree char *path = nd_format("%s/gone", r->layer);

        write_file(path, "");
        step(setxattr(path, "user.overlay.whiteout", "y", 1, 0) == 0);
        step(setxattr(r->layer, "user.overlay.opaque", "x", 1, 0) == 0);
}

int main(void) {
        struct rootfs r;
        int tree = -EBADF;
        struct nd_error *error;

        need_root();
        done(nd_mount_namespace_private());
        r = rootfs_make(make_pod_userns(POD_ROOT, false));
        write_file(nd_format("%s/old", r.layer), "");
        write_file(nd_format("%s/doomed", r.layer), "");
        write_whiteout(&r);

        saw("overlay of idmapped %s, upperdir on the same filesystem, userxattr, volatile", r.layer);
        error = rootfs_build(&r, &tree);
        if (error)
                saw("%s", nd_error_text(error));
        expect(!error, "the kernel takes an idmapped layer with userxattr and volatile");
        done(nd_mount_attach(tree, AT_FDCWD, r.target));
        expect(count_mounts("userxattr") >= 1 && count_mounts("volatile") >= 1, "the mount table says userxattr and volatile");

        show_owner(&r, "rootfs", "old", POD_ROOT);
        show_owner(&r, "layer", "old", 0);
        step(in_child(in_pod, &r) == 0);
        show_owner(&r, "upper", "new", POD_ROOT);
        show_owner(&r, "upper", "old", POD_ROOT);
        show_owner(&r, "layer", "old", 0);
        step(umount2(r.stage, MNT_DETACH) == 0);
        rootfs_remove(&r);
        return EXIT_SUCCESS;
}
