/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pod/joined-namespaces.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "cri/namespace/namespaces.h"
#include "cri/pod/container-process.h"
#include "sys/calls.h"
#include "sys/file.h"

struct nd_error *cri_joined_namespaces_open(const struct cri_container *holder, const char *what, int *ret_fd) {
        nd_autoclose int process = holder && cri_container_lives(holder) ? cri_container_process(holder) : -EBADF, fd = -EBADF;
        nd_autofree char *path = nullptr;

        if (process >= 0) {
                path = nd_format("/proc/%d/ns/pid", (int) holder->pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
        }
        /* If the pidfd is still alive now, the pid was not reused before the open. */
        if (fd < 0 || nd_sys->pidfd_send_signal(process, 0, 0) < 0)
                return nd_error_new(ND_PRECONDITION, 0, "%s is not running: cannot join its pid namespace", what);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* ---- comparison ---- */

enum expectation {
        THE_SAME,
        ANOTHER,
};

static bool is_same(const struct stat *one, const struct stat *other) {
        return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static struct nd_error *compare(pid_t pid, const char *name, const struct stat *with, enum expectation expected) {
        nd_autofree char *path = nd_format("/proc/%d/ns/%s", (int) pid, name);
        struct stat found;

        if (stat(path, &found) < 0)
                return errno == ENOENT || errno == ESRCH ? nullptr
                                                         : nd_error_new(ND_INTERNAL, errno, "stat the container's namespaces");
        if (is_same(&found, with) == (expected == THE_SAME))
                return nullptr;
        return nd_error_new(ND_INTERNAL, 0, "the OCI runtime created a container in the wrong namespace: %s:[%ju]", name,
                            (uintmax_t) found.st_ino);
}

static struct nd_error *look(const char *path, struct stat *ret) {
        return stat(path, ret) < 0 ? nd_error_new(ND_INTERNAL, errno, "stat namespace '%s'", path) : nullptr;
}

/* path nullptr = the daemon's own namespace, which is the host's. */
static struct nd_error *compare_with(pid_t pid, const char *name, const char *path, enum expectation expected) {
        nd_autofree char *own = nd_format("/proc/self/ns/%s", name);
        struct stat with;

        nd_try(look(path ?: own, &with));
        return compare(pid, name, &with, expected);
}

struct nd_error *cri_joined_namespaces_check(pid_t pid, const struct cri_bundle_plan *plan, int pid_namespace) {
        struct stat joined;

        for (unsigned i = 0; i < POD_NAMESPACES; i++)
                nd_try(compare_with(pid, cri_namespaces_name((enum cri_pod_namespace) i), plan->namespaces[i], THE_SAME));
        nd_try(compare_with(pid, "mnt", nullptr, ANOTHER));
        if (pid_namespace < 0)
                return compare_with(pid, "pid", nullptr, plan->pid ? ANOTHER : THE_SAME);
        if (fstat(pid_namespace, &joined) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat a pid namespace");
        return compare(pid, "pid", &joined, THE_SAME);
}
