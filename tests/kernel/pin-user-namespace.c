/* SPDX-License-Identifier: Apache-2.0 */
/* A user namespace can be pinned on its own.
 *
 * What the kernel does: a bind mount of a namespace's file keeps the namespace alive when no
 * process is in it and no descriptor refers to it. It can be joined by that path later, and
 * namespaces made from within (here: a network namespace) are owned by it; such a network namespace
 * in turn outlives the process that made it when it is pinned.
 *
 * Why nodens needs it: a pod sandbox has no pause process. RunPodSandbox makes a user namespace,
 * pins it under /run/nodens/pods/<id>/, and the containers join it by path, minutes or months
 * later. A pod on the host's network has a user namespace too, so it must not hang on the network
 * namespace. */
#include <linux/nsfs.h>
#include <sys/ioctl.h>

#include "evidence.h"
#include "sys/mount.h"

static ino_t inode_of(const char *path) {
        struct stat st;

        step(stat(path, &st) == 0);
        return st.st_ino;
}

static void pin(int fd, const char *path) {
        nd_autofree char *source = nd_format("/proc/self/fd/%d", fd);

        write_file(path, "");
        step(mount(source, path, nullptr, MS_BIND, nullptr) == 0);
}

struct paths {
        char *user, *net;
};

/* A process that comes later, knows the path only, and makes a network namespace inside. */
static int join_and_unshare(void *argument) {
        const struct paths *paths = argument;
        nd_autoclose int user = open(paths->user, O_RDONLY | O_CLOEXEC), owner = -EBADF, net = -EBADF, mounts = -EBADF;
        nd_autofree char *link = nullptr;
        char map[256];
        struct stat st;

        step(user >= 0);
        mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        /* The process that goes in; it stays until its network namespace is pinned from outside. */
        if (fork() == 0) {
                enter_userns(user);
                step(unshare(CLONE_NEWNET) == 0);
                step(raise(SIGSTOP) == 0);
                exit(0);
        } else {
                int status;
                pid_t pid = waitpid(-1, &status, WUNTRACED);

                step(pid > 0 && WIFSTOPPED(status));
                link = nd_format("/proc/%d/uid_map", (int) pid);
                saw("a process joined it by path; its uid_map: %s", strtok(read_text(link, map, sizeof map), "\n"));
                expect(strstr(map, "1310720") && strstr(map, "65536"), "the maps are those that it was made with");

                free(link);
                link = nd_format("/proc/%d/ns/net", (int) pid);
                net = open(link, O_RDONLY | O_CLOEXEC);
                owner = ioctl(net, NS_GET_USERNS);
                step(owner >= 0 && fstat(owner, &st) == 0);
                expect(st.st_ino == inode_of(paths->user), "a network namespace made inside is owned by it");
                pin(net, paths->net);
                step(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
        }
        return 0;
}

static int enter_network(void *argument) {
        const struct paths *paths = argument;
        nd_autoclose int user = open(paths->user, O_RDONLY | O_CLOEXEC), net = open(paths->net, O_RDONLY | O_CLOEXEC);

        enter_userns(user);
        expect(setns(net, CLONE_NEWNET) == 0, "root of the user namespace may enter the network namespace by its pin");
        return 0;
}

int main(void) {
        struct paths paths;
        char *directory;
        int fd;

        need_root();
        done(nd_mount_namespace_private());
        directory = scratch_directory("/tmp");
        paths = (struct paths) {nd_format("%s/user", directory), nd_format("%s/net", directory)};

        fd = make_pod_userns(POD_ROOT, false);
        pin(fd, paths.user);
        step(close(fd) == 0);
        saw("a user namespace was made and pinned; no process is in it, no descriptor refers to it");

        step(in_child(join_and_unshare, &paths) == 0);
        saw("the process that made the network namespace is gone, its pin stays");
        step(in_child(enter_network, &paths) == 0);

        step(umount2(paths.net, MNT_DETACH) == 0 && umount2(paths.user, MNT_DETACH) == 0);
        step(unlink(paths.net) == 0 && unlink(paths.user) == 0 && rmdir(directory) == 0);
        return EXIT_SUCCESS;
}
