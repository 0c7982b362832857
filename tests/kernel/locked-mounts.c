/* SPDX-License-Identifier: Apache-2.0 */
/* A read-only mount that is there before the mount namespace is copied for a user namespace stays
 * read-only in it.
 *
 * What the kernel does: a mount namespace that is copied for a less privileged user namespace has
 * all mounts with their flags locked. A recursive bind of a tree keeps the locks of what is mounted
 * below, as an engine does with a root filesystem: there the read-only flag cannot be cleared,
 * neither on the mount nor on a copy of it, and the mount cannot be taken away. What is mounted
 * later from a clone that was made outside has no such lock. When the original is unmounted outside
 * afterwards, the copy stays. An overlay without an upper directory needs no lock: its superblock
 * cannot be written.
 *
 * Why nodens needs it: root of a pod with SYS_ADMIN could otherwise make every read-only volume
 * writable, and with an idmapped one it is root on the host's files. So nodens attaches volumes
 * below the root filesystem on the host's side (src/cri/bundle/volumes.c) and gives the engine none
 * that is read-only. */
#include "evidence.h"
#include "sys/mount.h"

struct tree {
        char *root, *volume, *late, *image, *file, *late_file, *image_file;
        int userns, clone;
};

static bool can_write(const char *path) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        if (fd < 0)
                return false;
        (void) close(fd);
        return unlink(path) == 0;
}

static bool make_writable(const char *path) {
        return mount_setattr(AT_FDCWD, path, 0, &(struct mount_attr) {.attr_clr = MOUNT_ATTR_RDONLY}, MOUNT_ATTR_SIZE_VER0) ==
               0;
}

/* What an engine does, and then what the container's root tries. */
static int in_pod(void *argument) {
        const struct tree *t = argument;

        enter_userns(t->userns);
        step(unshare(CLONE_NEWNS) == 0);
        step(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        step(mount(t->root, t->root, nullptr, MS_BIND | MS_REC, nullptr) == 0);
        step(move_mount(t->clone, "", AT_FDCWD, t->late, MOVE_MOUNT_F_EMPTY_PATH) == 0);
        step(mount(nullptr, t->late, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);

        expect(!can_write(t->file) && errno == EROFS, "the volume is read-only");
        expect(!make_writable(t->volume) && errno == EPERM, "its flag cannot be cleared");
        expect(umount2(t->volume, MNT_DETACH) < 0 && errno == EINVAL, "it cannot be unmounted");
        step(mount(t->volume, t->image, nullptr, MS_BIND, nullptr) == 0);
        expect(!make_writable(t->image) && errno == EPERM, "nor can the flag of a copy of it");
        step(umount2(t->image, MNT_DETACH) == 0);
        expect(make_writable(t->late) && can_write(t->late_file), "what came as a clone from outside is writable in a moment");
        (void) make_writable(t->image);
        expect(!can_write(t->image_file) && errno == EROFS, "an overlay without an upper directory is not, with any flag");
        return EXIT_SUCCESS;
}

/* In a namespace of its own, until the other side has unmounted. */
static int stay(void *argument) {
        const struct tree *t = argument;

        enter_userns(t->userns);
        step(unshare(CLONE_NEWNS) == 0);
        step(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
        step(mount(t->root, t->root, nullptr, MS_BIND | MS_REC, nullptr) == 0);
        step(raise(SIGSTOP) == 0);
        return !can_write(t->file) && errno == EROFS && !make_writable(t->volume) ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void) {
        struct tree t = {};
        char *base;
        int overlay = -EBADF, status;
        pid_t pid;

        need_root();
        done(nd_mount_namespace_private());
        base = scratch_directory("/tmp");
        step(mount("tmpfs", base, "tmpfs", 0, "mode=755") == 0 && chdir(base) == 0);
        step(mkdir("host", 0777) == 0 && mkdir("root", 0755) == 0 && mkdir("layer", 0777) == 0 && mkdir("empty", 0755) == 0);
        step(chmod("host", 0777) == 0 && chmod("layer", 0777) == 0);
        t = (struct tree) {.root = nd_format("%s/root", base),
                           .volume = nd_format("%s/root/volume", base),
                           .late = nd_format("%s/root/late", base),
                           .image = nd_format("%s/root/image", base),
                           .file = nd_format("%s/root/volume/new", base),
                           .late_file = nd_format("%s/root/late/new", base),
                           .image_file = nd_format("%s/root/image/new", base),
                           .userns = make_pod_userns(POD_ROOT, false)};
        step(mount(t.root, t.root, nullptr, MS_BIND, nullptr) == 0);
        step(mkdir(t.volume, 0755) == 0 && mkdir(t.late, 0755) == 0 && mkdir(t.image, 0755) == 0);
        step(mount("host", t.volume, nullptr, MS_BIND, nullptr) == 0);
        step(mount(nullptr, t.volume, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0);
        done(nd_mount_fs_make("overlay", (const struct nd_mount_fs_option[]) {{"lowerdir+", "layer"}, {"lowerdir+", "empty"}},
                              2, MOUNT_ATTR_RDONLY, &overlay));
        done(nd_mount_attach(overlay, AT_FDCWD, t.image));
        done(nd_mount_clone(AT_FDCWD, "host", false, &t.clone));
        saw("a volume is read-only below a root; another comes as a clone; an image is an overlay without an upper directory");
        if (in_child(in_pod, &t) != EXIT_SUCCESS)
                return EXIT_FAILURE;

        pid = fork();
        step(pid >= 0);
        if (pid == 0)
                exit(stay(&t));
        step(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
        step(umount2(t.root, MNT_DETACH) == 0);
        step(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, 0) == pid);
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "unmounted outside, it is still there inside, and still locked");
        return EXIT_SUCCESS;
}
