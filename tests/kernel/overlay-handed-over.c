/* SPDX-License-Identifier: Apache-2.0 */
/* A detached overlay is built in one mount namespace and attached in another.
 *
 * What the kernel does: fsmount() gives a mount that is attached nowhere. Its descriptor can be
 * passed over a socket, and move_mount() attaches it in the receiver's mount namespace, though the
 * overlay was made in another, and works on after that other namespace, with the idmapped layer
 * attached in it, is gone.
 *
 * Why nodens needs it: the daemon shares the host's mount namespace. A short-lived child builds a
 * root filesystem in a private one and hands it back, so the host's mount table grows by one line
 * per container and no idmapped layer ever shows there. */
#include "overlay.h"
#include "sys/worker.h"

static int use_it(void *argument) {
        struct rootfs *r = argument;

        enter_userns(r->userns);
        step(chdir(r->target) == 0);
        write_file("new", "after the builder's end");
        return 0;
}

int main(void) {
        struct rootfs r;
        size_t before;
        int tree = -EBADF;
        struct stat st;

        need_root();
        done(nd_mount_namespace_private()); /* stands for the host's */
        r = rootfs_make(make_pod_userns(POD_ROOT, false));
        write_file(nd_format("%s/old", r.layer), "");
        before = count_mounts(nullptr);

        done(nd_worker_run("build a root filesystem", rootfs_build, &r, 60 * SECOND_US, &tree));
        saw("a child built the overlay in its own mount namespace, passed the descriptor and is gone");
        expect(count_mounts(nullptr) == before, "nothing was mounted here so far");
        expect(nd_sys->move_mount(tree, "", AT_FDCWD, r.target, MOVE_MOUNT_F_EMPTY_PATH) == 0, "it can be attached here");
        step(close(tree) == 0);
        expect(count_mounts(nullptr) == before + 1, "the mount table has one line more");
        expect(count_mounts("idmapped") == 0, "no line says idmapped");

        step(stat(nd_format("%s/old", r.target), &st) == 0);
        expect(st.st_uid == POD_ROOT, "a file of the layer belongs to %u: the map is at work", st.st_uid);
        step(in_child(use_it, &r) == 0);
        step(stat(nd_format("%s/new", r.upper), &st) == 0);
        expect(st.st_uid == POD_ROOT, "a new file lands in the upper directory with owner %u", st.st_uid);
        rootfs_remove(&r);
        expect(count_mounts(nullptr) == before, "one unmount takes all of it away");
        return EXIT_SUCCESS;
}
