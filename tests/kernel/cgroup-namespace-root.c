/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup namespace's root is the cgroup that the new process begins in.
 *
 * What the kernel does: CLONE_NEWCGROUP roots the namespace at the child's cgroup. With
 * CLONE_INTO_CGROUP that is the leaf it is cloned into, and the leaf's siblings are outside
 * forever; cloned first and moved afterwards, the root stays where the child began.
 *
 * Why nodens needs it: the init of a rootless node must live in a leaf, since only a cgroup without
 * processes hands its controllers on, and yet see the delegated cgroup as its root, to make pods'
 * cgroups in it. So it is cloned in the delegated cgroup and moves. */
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>

#include "evidence.h"

static char *top;

/* What a process that moves itself to the leaf sees as its own cgroup, and whether it sees the
 * sibling. */
static int moved(void *argument) {
        char text[4096], *leaf = nd_format("%s/leaf/cgroup.procs", top);

        (void) argument;
        step(unshare(CLONE_NEWCGROUP) == 0);
        write_file(leaf, "0");
        saw("cloned in the delegated cgroup, then moved: %s", read_text("/proc/self/cgroup", text, sizeof text));
        expect(strstr(text, "0::/leaf\n"), "the root is the delegated cgroup, and the process is in its leaf");
        return EXIT_SUCCESS;
}

static int cloned_into(void) {
        char text[4096], *leaf = nd_format("%s/leaf", top);
        int fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
        struct clone_args arguments = {
                .flags = CLONE_NEWCGROUP | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t) fd};
        pid_t pid;

        step(fd >= 0);
        pid = (pid_t) syscall(SYS_clone3, &arguments, sizeof arguments);
        step(pid >= 0);
        if (pid == 0) {
                saw("cloned into the leaf: %s", read_text("/proc/self/cgroup", text, sizeof text));
                expect(strstr(text, "0::/\n"), "the leaf is the root, and its siblings cannot be reached");
                exit(EXIT_SUCCESS);
        }
        step(waitpid(pid, &status, 0) == pid);
        return status;
}

int main(void) {
        char *leaf, *procs;
        int status, moved_status;

        need_root();
        if (access("/sys/fs/cgroup/cgroup.procs", W_OK) < 0)
                skip("no cgroup v2 at /sys/fs/cgroup that can be written");
        top = nd_format("/sys/fs/cgroup/kernel-test-%d", (int) getpid());
        leaf = nd_format("%s/leaf", top);
        procs = nd_format("%s/cgroup.procs", top);
        step(mkdir(top, 0755) == 0 && mkdir(leaf, 0755) == 0);
        write_file(procs, "0");
        moved_status = in_child(moved, nullptr);
        status = cloned_into();
        write_file("/sys/fs/cgroup/cgroup.procs", "0");
        step(rmdir(leaf) == 0 && rmdir(top) == 0);
        return moved_status == 0 && status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
