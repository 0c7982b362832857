/* SPDX-License-Identifier: Apache-2.0 */
/* mount.c - see mount.h */
#include "bridge/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "sys/calls.h"
#include "sys/mount.h"

struct nd_error *bridge_mount_open(struct bridge_state *state, int dir_fd, const char *source) {
        struct bridge_shared *shared = state->shared;

        nd_try(nd_mount_clone(dir_fd, source, false, &shared->root));
        nd_try(nd_mount_set(shared->root, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, false));
        /* Opening by handle takes no O_PATH descriptor. A volume that is a single file has none. */
        shared->mount = openat(shared->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (shared->mount < 0 && errno != ENOTDIR)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", source);
        shared->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (shared->proc < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open /proc");
        return nullptr;
}

/* ---- in the pod's user namespace ---- */

/* A child joins the user namespace. It shares our descriptors, and this memory. */
struct plan {
        int userns;
        mode_t kind;
        int device, tree; /* results; -EBADF after an error */
        enum nd_error_code code;
        char error[256];
};

static struct nd_error *make_tree(const struct plan *plan, int device, int *ret_tree) {
        char number[16], mode[16];
        const struct nd_mount_fs_option options[] = {
                {"source", "nodens-bridge"},
                {"subtype", "nodens-bridge"},
                {"fd", number},
                {"rootmode", mode},
                {"user_id", "0"},
                {"group_id", "0"},
                {"allow_other", nullptr},
                {"default_permissions", nullptr},
        };

        (void) snprintf(number, sizeof number, "%d", device);
        (void) snprintf(mode, sizeof mode, "%o", plan->kind);
        return nd_mount_fs_make("fuse", options, nd_count_of(options),
                                MOUNT_ATTR_NODEV | (plan->userns < 0 ? MOUNT_ATTR_NOSUID : 0), ret_tree);
}

static struct nd_error *make(struct plan *plan) {
        nd_autoclose int device = -EBADF;
        int tree;

        if (plan->userns >= 0 && nd_sys->setns(plan->userns, CLONE_NEWUSER) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "join the pod's user namespace");
        nd_try(nd_mount_namespace_private());
        /* The kernel accepts the device only for a filesystem of the user namespace in which it was
         * opened. */
        device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        if (device < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open /dev/fuse");
        nd_try(make_tree(plan, device, &tree));
        plan->device = nd_take_fd(device);
        plan->tree = tree;
        return nullptr;
}

static struct nd_error *make_in_child(struct plan *plan) {
        struct clone_args arguments = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);
        nd_autoerror struct nd_error *error = nullptr;
        int status;

        if (pid == 0) {
                error = make(plan);
                plan->code = nd_error_code(error);
                if (error)
                        (void) snprintf(plan->error, sizeof plan->error, "%s", nd_error_text(error));
                _exit(EXIT_SUCCESS);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "run a child");
        if (plan->code != ND_OK)
                return nd_error_received(plan->code, 0, plan->error);
        return plan->tree < 0 ? nd_error_new(ND_INTERNAL, 0, "the child that mounts died") : nullptr;
}

struct nd_error *bridge_mount_make(struct bridge_state *state, int userns, int *ret_tree) {
        struct bridge_shared *shared = state->shared;
        struct plan *plan = mmap(nullptr, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct nd_error *error;
        struct stat st;

        if (plan == MAP_FAILED || fstat(shared->root, &st) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read the volume's attributes");
        *plan = (struct plan) {.userns = userns, .kind = st.st_mode & S_IFMT, .device = -EBADF, .tree = -EBADF};
        error = make_in_child(plan);
        if (!error) {
                shared->device = plan->device;
                *ret_tree = plan->tree;
        }
        (void) munmap(plan, sizeof *plan);
        return error;
}
