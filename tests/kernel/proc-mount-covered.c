/* SPDX-License-Identifier: Apache-2.0 */
/* A user namespace may mount proc only if the proc that it already sees is uncovered.
 *
 * What the kernel does: in a user namespace with its own pid and mount namespace, mounting a new
 * proc is refused (EPERM) when something is mounted over a part of the /proc that is visible there:
 * the new one would reveal what was covered. Without such a mount it is allowed.
 *
 * Why nodens needs it: a rootless node and pods with procMount: Unmasked mount proc in a user
 * namespace. Masking a file of the host's /proc in the initial mount namespace (a fake
 * /proc/cpuinfo) breaks that for every pod; `nodens check` looks for it, and nothing of ours may
 * mount over /proc in the host's mount namespace. */
#include "evidence.h"
#include "sys/mount.h"

static int init_of_pod(void *) {
        return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0 ? 0 : errno;
}

/* The exit code is the errno of the mount. */
static int mount_in_userns(void *argument) {
        enter_userns(*(int *) argument);
        step(unshare(CLONE_NEWNS | CLONE_NEWPID) == 0);
        return in_child(init_of_pod, nullptr);
}

int main(void) {
        int userns, result;

        need_root();
        done(nd_mount_namespace_private());
        step(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) ==
             0); /* complete, replacing the old contents */
        userns = make_pod_userns(POD_ROOT, false);

        result = in_child(mount_in_userns, &userns);
        expect(result == 0, "with a whole /proc the namespace may mount its own (%s)", strerror(result));

        write_file("/tmp/cpuinfo", "");
        step(mount("/tmp/cpuinfo", "/proc/cpuinfo", nullptr, MS_BIND, nullptr) == 0);
        saw("a file is mounted over /proc/cpuinfo");
        result = in_child(mount_in_userns, &userns);
        expect(result == EPERM, "now it may not (%s)", strerror(result));

        step(umount2("/proc/cpuinfo", MNT_DETACH) == 0 && unlink("/tmp/cpuinfo") == 0);
        result = in_child(mount_in_userns, &userns);
        expect(result == 0, "and without that file it may again (%s)", strerror(result));
        return EXIT_SUCCESS;
}
