/* SPDX-License-Identifier: Apache-2.0 */
/* Which filesystems can be idmapped: ext4 and tmpfs can, overlayfs itself cannot.
 *
 * What the kernel does: mount_setattr(MOUNT_ATTR_IDMAP) with a user namespace makes a detached
 * clone of a mount show every owner shifted by the namespace's map, and take new files back the
 * same way; the filesystem keeps the unshifted owners and other mounts of it do not change. A
 * filesystem has to support it. Overlayfs does not (EINVAL), up to the kernels we know.
 *
 * Why nodens needs it: volumes and image layers keep the owners that containers see (0, 1000 ...),
 * so that one copy serves every pod for any block of IDs. And since an overlay cannot be idmapped,
 * the layers below it must be. */
#include "evidence.h"
#include "sys/mount.h"

struct place {
        const char *name;
        char *directory;
        int userns;
};

static int write_inside(void *argument) {
        struct place *place = argument;
        nd_autofree char *path = nd_format("%s/mapped/written", place->directory);

        enter_userns(place->userns);
        expect(chmod(nd_format("%s/mapped/file", place->directory), 0600) == 0,
               "root of the pod owns what belongs to root on disk");
        write_file(path, "hello");
        return 0;
}

static void try_idmap(struct place *place) {
        nd_autofree char *store = nd_format("%s/store", place->directory), *mapped = nd_format("%s/mapped", place->directory);
        nd_autofree char *file = nd_format("%s/file", store), *seen = nd_format("%s/file", mapped);
        nd_autofree char *written = nd_format("%s/written", store);
        nd_autoclose int tree = -EBADF;
        struct stat st;

        step(mkdir(store, 0755) == 0 && mkdir(mapped, 0755) == 0 && chmod(place->directory, 0755) == 0);
        write_file(file, "");
        done(nd_mount_clone(AT_FDCWD, store, false, &tree));
        saw("%s: a clone of %s is idmapped to %d", nd_mount_fs_name(tree), store, POD_ROOT);
        if (strcmp(nd_mount_fs_name(tree), place->name) != 0)
                skip("%s is on %s, and %s is what is to be tried", place->directory, nd_mount_fs_name(tree), place->name);
        done(nd_mount_idmap(tree, place->userns, false));
        done(nd_mount_attach(tree, AT_FDCWD, mapped));
        step(stat(seen, &st) == 0);
        expect(st.st_uid == POD_ROOT && st.st_gid == POD_ROOT, "through it root's file belongs to %u", st.st_uid);
        step(in_child(write_inside, place) == 0);
        step(stat(written, &st) == 0);
        expect(st.st_uid == 0 && st.st_gid == 0, "what the pod's root (%d outside) wrote belongs to %u on disk", POD_ROOT,
               st.st_uid);

        step(umount2(mapped, MNT_DETACH) == 0 && unlink(written) == 0 && unlink(file) == 0);
        step(rmdir(mapped) == 0 && rmdir(store) == 0);
}

static void try_overlay(int userns) {
        nd_autofree char *base = scratch_directory("/tmp"), *lower = nd_format("%s/lower", base),
                         *upper = nd_format("%s/upper", base);
        nd_autofree char *work = nd_format("%s/work", base);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int tree = -EBADF;
        struct nd_mount_fs_option options[] = {{"lowerdir+", lower}, {"upperdir", upper}, {"workdir", work}};
        char *made[] = {lower, upper, work};

        for (size_t i = 0; i < nd_count_of(made); i++)
                step(mkdir(made[i], 0755) == 0);
        done(nd_mount_fs_make("overlay", options, nd_count_of(options), 0, &tree));
        saw("overlayfs: a detached overlay is idmapped");
        error = nd_mount_idmap(tree, userns, false);
        expect(nd_error_errno(error) == EINVAL, "the kernel refuses: %s", nd_error_text(error));
        nd_close_fd(&tree);
        step(rmdir(nd_format("%s/work", work)) == 0); /* made by the kernel */
        for (size_t i = 0; i < nd_count_of(made); i++)
                step(rmdir(made[i]) == 0);
        step(rmdir(base) == 0);
}

int main(void) {
        struct place places[] = {{.name = "tmpfs"}, {.name = "ext4"}};

        need_root();
        done(nd_mount_namespace_private());
        step(mount("tmpfs", "/tmp", "tmpfs", 0, "mode=1777") == 0);
        places[0].directory = scratch_directory("/tmp");
        places[1].directory = scratch_directory("/var/tmp");
        for (size_t i = 0; i < nd_count_of(places); i++) {
                places[i].userns = make_pod_userns(POD_ROOT, false);
                try_idmap(&places[i]);
                step(rmdir(places[i].directory) == 0);
        }
        try_overlay(places[0].userns);
        return EXIT_SUCCESS;
}
