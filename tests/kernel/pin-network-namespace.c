/* SPDX-License-Identifier: Apache-2.0 */
/* A network namespace that belongs to a pod's user namespace can be pinned at the usual place.
 *
 * What the kernel does: host root may bind-mount the file of a network namespace that a pod's user
 * namespace owns, enter it by that path and configure it, though its own user namespace does not
 * own it; the pod's root may do the same inside, and nothing outside. Removing the mount ends the
 * namespace.
 *
 * Why nodens needs it: CNI plugins and network agents get the path of a network namespace and enter
 * it as host root. They look under /run/netns, so nodens pins it as /run/netns/nodens-<id>; the pod
 * must own it, so that it may set its own sysctls and routes. */
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "evidence.h"
#include "sys/mount.h"

#define PIN "/run/netns/nodens-kernel-test"

static int make_in_userns(void *argument) {
        int user = *(int *) argument, status;
        nd_autofree char *source = nullptr;
        pid_t pid = fork();

        step(pid >= 0);
        if (pid == 0) {
                enter_userns(user);
                step(unshare(CLONE_NEWNET) == 0 && raise(SIGSTOP) == 0);
                exit(0);
        }
        step(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
        source = nd_format("/proc/%d/ns/net", (int) pid);
        write_file(PIN, "");
        expect(mount(source, PIN, nullptr, MS_BIND, nullptr) == 0, "host root pins it as %s", PIN);
        step(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
        return 0;
}

static int set_loopback_up(bool *ret_was_up) {
        nd_autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq request = {.ifr_name = "lo"};

        if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
                return -1;
        *ret_was_up = request.ifr_flags & IFF_UP;
        request.ifr_flags |= IFF_UP;
        return ioctl(fd, SIOCSIFFLAGS, &request);
}

static int as_host_root(void *) {
        nd_autoclose int net = open(PIN, O_RDONLY | O_CLOEXEC);
        bool was_up = true;

        step(setns(net, CLONE_NEWNET) == 0);
        expect(set_loopback_up(&was_up) == 0 && !was_up,
               "host root enters by the path and brings lo up, as a CNI plugin would");
        return 0;
}

static int as_pod_root(void *argument) {
        nd_autoclose int net = open(PIN, O_RDONLY | O_CLOEXEC), host = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        bool was_up = false;

        enter_userns(*(int *) argument);
        expect(set_loopback_up(&was_up) < 0 && errno == EPERM, "root of the pod may not touch the host's network (%s)",
               strerror(errno));
        step(setns(net, CLONE_NEWNET) == 0);
        expect(set_loopback_up(&was_up) == 0 && was_up, "in its own network namespace it may, and sees what host root did");
        expect(setns(host, CLONE_NEWNET) < 0 && errno == EPERM, "there is no way back into the host's (%s)", strerror(errno));
        return 0;
}

int main(void) {
        int user;

        need_root();
        done(nd_mount_namespace_private());
        step(mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0); /* not the host's own /run */
        step(mkdir("/run/netns", 0755) == 0);
        user = make_pod_userns(POD_ROOT, false);

        step(in_child(make_in_userns, &user) == 0);
        saw("its maker is gone");
        step(in_child(as_host_root, nullptr) == 0);
        step(in_child(as_pod_root, &user) == 0);
        expect(umount2(PIN, MNT_DETACH) == 0 && open(PIN, O_RDONLY | O_CLOEXEC) >= 0 && unlink(PIN) == 0,
               "without the mount only an empty file is left");
        return EXIT_SUCCESS;
}
