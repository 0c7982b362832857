/* SPDX-License-Identifier: Apache-2.0 */
/* init-start.c - see init-start.h
 *
 * Theory of operation
 *   launcher --clone--> builder --clone--> init, a child of the launcher as well (CLONE_PARENT)
 *
 *   The builder has its own user and mount namespace. It makes the mounts that the node must not be
 *   able to change (mounts.c), then clones init into all of the node's namespaces and exits. Since
 *   init's user namespace differs from the builder's, the kernel locks the flags of the builder's
 *   mounts. Neither calls execve(), so both keep their capabilities.
 *   newuidmap and newgidmap write the builder's maps, with a timeout each: they may query a
 *   directory service. The launcher writes them itself for a node with the user's own ID only,
 *   and as root of a container (inside.h). The builder writes init's maps, which map every ID to
 *   itself.
 *   The root of the cgroup namespace is the cgroup of the cloning process: the delegated one.
 *   Therefore no process is cloned into a leaf. Launcher and init move to leaves when the builder
 *   has exited, since the kernel enables controllers for children only in a cgroup without
 *   processes.
 *   Builder and init report to the launcher over one socket pair, init after the builder has
 *   exited. They announce each phase, so that the error of a timeout names the phase that hung.
 *   PR_SET_PDEATHSIG is set after the change of IDs, which would clear it. The launcher may have
 *   died by then; the closed socket shows that.
 *   Init never has the caller's terminal, neither as a stream nor as its controlling terminal: root
 *   of the node can open init's descriptors and trace it.
 * Invariant  until "ready" the child has done nothing that its death does not undo. */
#include "rootless/node/init-start.h"

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "net/unix.h"
#include "rootless/core/control.h"
#include "rootless/network/network.h"
#include "rootless/node/ids.h"
#include "rootless/node/init.h"
#include "rootless/node/mounts.h"
#include "rootless/node/seccomp.h"
#include "sys/calls.h"
#include "sys/child.h"
#include "sys/file.h"

enum { BACKLOG = 64 };

static constexpr uint64_t phase_timeout_us = 15 * ND_SECOND_US;

/* ---- init ---- */

static struct nd_error *send_message(int fd, const char *verb, const char *name) {
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_control_begin(&text, verb);
        if (name)
                rootless_control_add(&text, "name", name);
        return rootless_control_send(fd, &text, nullptr, 0);
}

/* Waits until the maps are written. */
static struct nd_error *become_root(int fd) {
        nd_cleanup(rootless_control_done) struct rootless_control go = {};

        nd_try(rootless_control_receive(fd, 0, &go));
        /* Raw system calls: libc's wrappers signal other threads through state that a clone without
         * libc does not have. Groups go first, while we may still drop them; they stay where the
         * kernel denies that (no subordinate group IDs). */
        (void) syscall(SYS_setgroups, 0, nullptr);
        if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "become root of the user namespace");
        /* Changing IDs cleared the dumpable flag; without it no process could write the maps of
         * nested namespaces or enter ours. */
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "become dumpable");
        return nullptr;
}

static struct nd_error *set_names(const struct rootless_init_plan *plan) {
        if (sethostname(plan->name, strlen(plan->name)) == 0)
                return nullptr;
        /* We are root of the UTS namespace: only a filter can deny it, and it would deny it to
         * pods. */
        if (errno == EPERM && plan->maps_own)
                return nd_error_new(
                        ND_PRECONDITION, 0,
                        "the container's seccomp profile denies sethostname(), which pods need; start the container "
                        "with --security-opt seccomp=unconfined (in a pod seccompProfile.type: Unconfined)");
        return nd_error_new(nd_error_code_of(errno), errno, "set the node's host name");
}

static struct nd_error *write_cgroup(const char *file, const char *text) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup/%s", file);
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);

        if (fd < 0 || nd_sys->write(fd, text, strlen(text)) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "write '%s' to '%s' (is the cgroup delegated?)", text,
                                    path);
        return nullptr;
}

/* Moves us to our leaf and enables every controller for later leaves. A controller that cannot be
 * enabled (used by a v1 hierarchy or blocked by a realtime process) is missing for pods; `status`
 * shows which are there. It does not stop the node. */
static struct nd_error *enter_leaf(const struct rootless_init_plan *plan) {
        nd_autofree char *controllers = nullptr;

        if (!plan->cgroup)
                return nullptr;
        nd_try(nd_dir_make(AT_FDCWD, "/sys/fs/cgroup/holder", 0755));
        nd_try(write_cgroup("holder/cgroup.procs", "0"));
        nd_try(nd_file_read_kernel("/sys/fs/cgroup/cgroup.controllers", 4096, &controllers));
        for (char *word = controllers; *word;) {
                size_t length = strcspn(word, " \n");
                nd_autofree char *enable = nd_format("+%.*s", (int) length, word);
                nd_autoerror struct nd_error *missing = length > 0 ? write_cgroup("cgroup.subtree_control", enable) : nullptr;

                word += length + (word[length] != '\0');
        }
        return nullptr;
}

static struct nd_error *set_network(const struct rootless_init_plan *plan) {
        if (plan->network->driver == NET_DRIVER_HOST)
                return nullptr;
        nd_try(rootless_network_prepare());
        return rootless_network_apply(plan->network);
}

static struct nd_error *set_mounts(const struct rootless_init_plan *plan) {
        return rootless_mounts_enter(plan->binds);
}

static struct nd_error *confine([[maybe_unused]] const struct rootless_init_plan *plan) {
        return rootless_seccomp_load();
}

/* The phases that need no socket. */
static const struct {
        const char *name;
        struct nd_error *(*run)(const struct rootless_init_plan *plan);
} phases[] = {
        {"host name", set_names}, {"mounts", set_mounts},          {"cgroup", enter_leaf},
        {"network", set_network}, {"system call filter", confine},
};

static struct nd_error *build(const struct rootless_init_plan *plan, int fd) {
        nd_try(become_root(fd));
        if (plan->die_with_us && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "set the parent-death signal of the node's init process");
        for (size_t i = 0; i < nd_count_of(phases); i++) {
                nd_try(send_message(fd, "phase", phases[i].name));
                nd_try(phases[i].run(plan));
        }
        return send_message(fd, "ready", nullptr);
}

/* Starts a new session, without a terminal or file of the host. */
static void detach(void) {
        nd_autoclose int null = nd_sys->openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);

        (void) setsid();
        for (int stream = STDIN_FILENO; null >= 0 && stream <= STDERR_FILENO; stream++)
                (void) dup2(null, stream);
}

/* Root in the node can open what is in /proc/1/fd: a directory there would give access to the
 * host, and a lock would be held as long as the node lives. So we close everything but the two
 * sockets. */
static void keep_only(int *fd, int *listener) {
        enum { ASIDE = 64, FIRST = STDERR_FILENO + 1 };
        int aside[2] = {fcntl(*fd, F_DUPFD_CLOEXEC, ASIDE), fcntl(*listener, F_DUPFD_CLOEXEC, ASIDE)};

        *fd = dup3(aside[0], FIRST, O_CLOEXEC);
        *listener = dup3(aside[1], FIRST + 1, O_CLOEXEC);
        (void) close_range(FIRST + 2, ~0U, 0);
}

[[noreturn]] static void fail(struct nd_error *error, int fd) {
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_control_add_error(&text, error);
        /* the launcher may have exited; ignore the error */
        nd_ignore(rootless_control_send(fd, &text, nullptr, 0));
        _exit(EXIT_FAILURE);
}

[[noreturn]] static void init_main(const struct rootless_init_plan *plan, int fd, int listener) {
        struct nd_error *error;

        (void) setsid();
        keep_only(&fd, &listener); /* closes the builder's descriptor of the host's /proc, too */
        error = build(plan, fd);
        if (error)
                fail(error, fd);
        (void) close(fd);
        error = rootless_init_serve(listener, plan->cgroup != nullptr);
        _exit(error ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- the builder ---- */

/* Maps every ID of the builder's user namespace to itself in init's. The extents must be the same:
 * the kernel does not map a range across two extents. */
static struct nd_error *map_same(const struct rootless_init_plan *plan, int procfd) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps uids = {}, gids = {};

        nd_vector_each (map, &plan->uids) {
                nd_vector_push(&uids, ((struct nd_userns_map) {map->inside, map->inside, map->count}));
        }
        nd_vector_each (map, &plan->gids) {
                nd_vector_push(&gids, ((struct nd_userns_map) {map->inside, map->inside, map->count}));
        }
        return nd_userns_write_maps(
                &(struct nd_userns_plan) {
                        .uids = uids.items, .uid_count = uids.count, .gids = gids.items, .gid_count = gids.count},
                procfd);
}

/* Returns in the builder only; init does not return. */
static struct nd_error *clone_init(const struct rootless_init_plan *plan, int fd, int listener, pid_t *ret) {
        struct clone_args arguments = {.flags = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                                                CLONE_NEWUTS | CLONE_NEWCGROUP |
                                                (plan->network->driver == NET_DRIVER_HOST ? 0 : CLONE_NEWNET)};
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the node's namespaces");
        if (pid == 0)
                init_main(plan, fd, listener);
        *ret = pid;
        return nullptr;
}

static struct nd_error *prepare(const struct rootless_init_plan *plan, int fd, int listener, int proc) {
        nd_autoclose int procfd = -EBADF;
        nd_autofree char *number = nullptr;
        nd_autotext struct nd_text text = CONTROL_TEXT;
        pid_t pid = 0;

        nd_try(send_message(fd, "phase", "ID maps"));
        nd_try(become_root(fd));
        nd_try(send_message(fd, "phase", "read-only mounts"));
        nd_try(rootless_mounts_prepare(plan->binds));
        nd_try(send_message(fd, "phase", "namespaces"));
        nd_try(clone_init(plan, fd, listener, &pid));
        number = nd_format("%d", (int) pid);
        nd_try(nd_dir_open(proc, number, &procfd));
        nd_try(map_same(plan, procfd));
        rootless_control_begin(&text, "holder");
        rootless_control_add(&text, "pid", number);
        return rootless_control_send(fd, &text, nullptr, 0);
}

/* Root of the node can read init's memory and /proc/1/environ as long as the node lives. Each
 * command gets its own environment. */
static void forget_environment(void) {
        for (char **variable = environ; *variable; variable++)
                explicit_bzero(*variable, strlen(*variable));
        environ[0] = nullptr;
}

[[noreturn]] static void builder_main(const struct rootless_init_plan *plan, int fd, int listener) {
        nd_autoclose int proc = -EBADF;
        struct nd_error *error;

        detach();
        keep_only(&fd, &listener);
        forget_environment();
        (void) prctl(PR_SET_NAME, "nodens-holder");
        /* The path is no longer visible when init's maps are written. */
        error = nd_dir_open(AT_FDCWD, "/proc", &proc);
        if (!error)
                error = prepare(plan, fd, listener, proc);
        if (error)
                fail(error, fd);
        _exit(EXIT_SUCCESS);
}

/* ---- the launcher ---- */

static struct nd_error *write_map(const char *program, pid_t pid, const struct nd_userns_maps *maps) {
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        struct nd_child_plan plan = {.deadline_us = phase_timeout_us, .output_ceiling = 4096};
        struct nd_error *error;

        nd_strings_add(&argv, program);
        nd_strings_addf(&argv, "%d", (int) pid);
        nd_vector_each (map, maps) {
                nd_strings_addf(&argv, "%u", map->inside);
                nd_strings_addf(&argv, "%u", map->outside);
                nd_strings_addf(&argv, "%u", map->count);
        }
        nd_strings_add_owned(&argv, nullptr);
        plan.argv = (const char *const *) argv.items;
        error = nd_child_run(&plan, &result);
        if (error)
                return nd_error_wrap(error, "install it (Debian package uidmap)");
        return nd_error_wrap(nd_child_result_error(&result, program), "map the node's IDs");
}

/* Without newuidmap: root of a container may map its IDs, and a user the own one if the node cannot
 * change its groups. */
static struct nd_error *write_directly(const struct rootless_init_plan *plan, pid_t pid) {
        const struct nd_userns_plan maps = {.uids = plan->uids.items,
                                            .uid_count = plan->uids.count,
                                            .gids = plan->gids.items,
                                            .gid_count = plan->gids.count,
                                            .deny_setgroups = !plan->maps_own};
        nd_autofree char *path = nd_format("/proc/%d", (int) pid);
        nd_autoclose int procfd = -EBADF;

        nd_try(nd_dir_open(AT_FDCWD, path, &procfd));
        return nd_error_wrap(nd_userns_write_maps(&maps, procfd), "map the node's IDs");
}

static struct nd_error *write_ids(const struct rootless_init_plan *plan, pid_t pid) {
        if (plan->maps_own || rootless_ids_single(&plan->uids, &plan->gids))
                return write_directly(plan, pid);
        nd_try(write_map("newuidmap", pid, &plan->uids));
        return write_map("newgidmap", pid, &plan->gids);
}

/* Moves the launcher out of the delegated cgroup, so that controllers can be enabled for its
 * children. */
static struct nd_error *leave_root(const char *cgroup) {
        nd_autofree char *leaf = nd_format("/sys/fs/cgroup%s/launcher", cgroup), *procs = nd_format("%s/cgroup.procs", leaf);
        nd_autoclose int fd = -EBADF;

        nd_try(nd_dir_make(AT_FDCWD, leaf, 0755));
        fd = nd_sys->openat(AT_FDCWD, procs, O_WRONLY | O_CLOEXEC, 0);
        if (fd < 0 || nd_sys->write(fd, "0", 1) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "move to '%s'", leaf);
        return nullptr;
}

/* Reads messages until the awaited verb arrives, and returns that message. */
static struct nd_error *await_message(int fd, const char *awaited, struct rootless_control *ret) {
        char phase[64] = "start";

        for (;;) {
                nd_cleanup(rootless_control_done) struct rootless_control message = {};
                struct nd_error *error = rootless_control_receive(fd, phase_timeout_us, &message);
                const char *name;

                if (error || nd_streq(message.verb, "error"))
                        return nd_error_wrap(error ? error : rootless_control_error(&message), "start phase '%s' of the node",
                                             phase);
                if (nd_streq(message.verb, awaited)) {
                        *ret = nd_take(message, (struct rootless_control) {});
                        return nullptr;
                }
                name = rootless_control_get(&message, "name");
                (void) snprintf(phase, sizeof phase, "%s", name ? name : "?");
        }
}

static void reap(int pidfd) {
        siginfo_t end;

        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED); /* harmless if it was already reaped */
}

static void end_child(int pidfd) {
        if (pidfd < 0)
                return;
        (void) nd_sys->pidfd_send_signal(pidfd, SIGKILL, 0);
        reap(pidfd);
}

/* Receives init's PID from the builder. Init is our child and not yet reaped, so the PID cannot
 * have been reused. */
static struct nd_error *take_init(int fd, pid_t *ret_pid, int *ret_pidfd) {
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        const char *text;
        uint64_t pid;
        int pidfd;

        nd_try(await_message(fd, "holder", &message));
        text = rootless_control_get(&message, "pid");
        if (!text || nd_text_parse_u64(text, INT32_MAX, &pid) < 0 || pid < 2)
                return nd_error_new(ND_INTERNAL, EPROTO, "the builder did not report the PID of the node's init process");
        pidfd = pidfd_open((pid_t) pid, 0);
        if (pidfd < 0)
                return nd_error_new(ND_INTERNAL, errno, "open the node's init process, PID %s", text);
        *ret_pid = (pid_t) pid;
        *ret_pidfd = pidfd;
        return nullptr;
}

/* Handles the builder from its clone to init's pidfd. The builder exits by itself; the kernel takes
 * a while to dismantle its mounts. */
static struct nd_error *guide_builder(const struct rootless_init_plan *plan, pid_t builder, int builder_pidfd, int fd,
                                      pid_t *ret_pid, int *ret_pidfd) {
        struct nd_error *error = plan->cgroup ? leave_root(plan->cgroup) : nullptr;

        if (!error)
                error = write_ids(plan, builder);
        if (!error)
                error = send_message(fd, "go", nullptr);
        if (!error)
                error = take_init(fd, ret_pid, ret_pidfd);
        if (error)
                end_child(builder_pidfd);
        else if (plan->cgroup)
                reap(builder_pidfd); /* it is in the delegated cgroup, too */
        return error;
}

static struct nd_error *guide_init(int fd) {
        nd_cleanup(rootless_control_done) struct rootless_control message = {};

        nd_try(send_message(fd, "go", nullptr));
        return await_message(fd, "ready", &message);
}

static struct nd_error *listen_at(const char *path, int *ret_fd) {
        struct sockaddr_un address;
        nd_autoclose int fd = -EBADF;
        mode_t mask;
        int r;

        nd_try(nd_unix_address(path, &address));
        (void) nd_sys->unlinkat(AT_FDCWD, path, 0); /* of a dead node: we hold the lock */
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return nd_error_new(ND_INTERNAL, errno, "create a socket");
        mask = umask(0177);
        r = bind(fd, (struct sockaddr *) &address, sizeof address);
        (void) umask(mask);
        if (r < 0 || listen(fd, BACKLOG) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "listen at '%s'", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

/* The AppArmor profile that confines us. nullptr: none. */
static char *own_profile(void) {
        enum { PROFILE_BYTES = 512 };
        nd_autofree char *value = nullptr;

        nd_ignore(nd_file_read_kernel("/proc/self/attr/current", PROFILE_BYTES, &value));
        if (!value || !strstr(value, " (enforce)"))
                return nullptr;
        value[strcspn(value, " \n")] = '\0';
        return nd_take_ptr(value);
}

static struct nd_error *no_namespaces(int error) {
        nd_autofree char *value = nullptr, *profile = own_profile();

        nd_ignore(nd_file_read_kernel("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 16, &value));
        if (profile && error == EACCES)
                return nd_error_new(nd_error_code_of(error), error,
                                    "create the node's namespaces (the AppArmor profile '%s' denies user namespaces; choose "
                                    "another one, in a pod appArmorProfile.type: Unconfined)",
                                    profile);
        return nd_error_new(nd_error_code_of(error), error, "create the node's namespaces (%s)",
                            value && value[0] == '1' ? "AppArmor denies user namespaces; load the profile of nodens-rootless"
                                                     : "'nodens check --rootless' shows what denies them");
}

struct nd_error *rootless_init_start(const struct rootless_init_plan *plan, pid_t *ret_pid, int *ret_pidfd) {
        nd_autoclose int ours = -EBADF, theirs = -EBADF, builder_pidfd = -EBADF, pidfd = -EBADF, listener = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWNS,
                                       .exit_signal = SIGCHLD,
                                       .pidfd = (uintptr_t) &builder_pidfd};
        struct nd_error *error;
        int pair[2];
        pid_t builder, pid = 0;

        nd_try(listen_at(plan->socket, &listener));
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(ND_INTERNAL, errno, "create a socket pair");
        ours = pair[0];
        theirs = pair[1];
        builder = nd_sys->clone3(&arguments, sizeof arguments);
        if (builder < 0)
                return no_namespaces(errno);
        if (builder == 0) {
                (void) close(ours); /* else we would not see the launcher's death */
                builder_main(plan, theirs, listener);
        }
        nd_close_fd(&theirs);
        error = guide_builder(plan, builder, builder_pidfd, ours, &pid, &pidfd);
        if (!error)
                error = guide_init(ours);
        reap(builder_pidfd);
        if (error) {
                end_child(pidfd);
                (void) nd_sys->unlinkat(AT_FDCWD, plan->socket, 0);
                return error;
        }
        *ret_pid = pid;
        *ret_pidfd = nd_take_fd(pidfd);
        return nullptr;
}
