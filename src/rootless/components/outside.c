/* SPDX-License-Identifier: Apache-2.0 */
#include "rootless/components/outside.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rootless/node/seccomp.h"
#include "sys/calls.h"

/* As root of a user namespace, a program would get all capabilities when it is executed: the
 * bounding set prevents it. */
static struct nd_error *drop_capabilities(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {};

        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "drop capability %d", capability);
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "drop capabilities");
        return nullptr;
}

/* The parent's death signal comes last: a change of credentials clears it. */
static struct nd_error *enter(const struct rootless_outside *plan, pid_t parent) {
        if (nd_sys->setns(plan->node, CLONE_NEWUSER | CLONE_NEWNET) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the node's network");
        (void) syscall(SYS_setgroups, 0, nullptr);
        if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "become root of the node");
        nd_try(rootless_seccomp_load());
        nd_try(drop_capabilities());
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
                return nd_error_new(ND_INTERNAL, errno, "end with the process that started it");
        return nullptr;
}

[[noreturn]] static void child_main(const struct rootless_outside *plan, pid_t parent) {
        int null = nd_sys->openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
        struct nd_error *error;
        sigset_t none;

        (void) setsid();
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) umask(0077);
        if (null < 0 || chdir(plan->directory) < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(plan->output, STDOUT_FILENO) < 0 ||
            dup2(plan->output, STDERR_FILENO) < 0)
                _exit(126);
        error = enter(plan, parent);
        if (!error) {
                (void) close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
                (void) execve(plan->argv[0], (char *const *) plan->argv, (char *const *) plan->environment);
                error = nd_error_new(nd_error_code_of(errno), errno, "execute '%s'", plan->argv[0]);
        }
        (void) fprintf(stderr, "nodens-rootless: %s\n", nd_error_text(error));
        _exit(127);
}

struct nd_error *rootless_outside_start(const struct rootless_outside *plan, int *ret_pidfd) {
        int pidfd = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &pidfd};
        pid_t parent = getpid(), pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a process");
        if (pid == 0)
                child_main(plan, parent);
        *ret_pidfd = pidfd;
        return nullptr;
}
