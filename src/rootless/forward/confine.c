/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - see confine.h
 *
 * The forwarder and the broker handle data of untrusted clients. From here on they may only use
 * descriptors that they have or receive, and the broker TCP sockets: they cannot open files or see
 * or start processes. System calls that are not listed fail with EPERM, so a denied call is
 * reported as an error instead of killing the process. */
#include "rootless/forward/confine.h"

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static const char *const allowed[] = {
        /* sockets */
        "accept4",
        "bind",
        "connect",
        "getpeername",
        "getsockname",
        "getsockopt",
        "recvfrom",
        "recvmmsg",
        "recvmsg",
        "sendmmsg",
        "sendmsg",
        "sendto",
        "setsockopt",
        "shutdown",
        /* pipes and other descriptors */
        "close",
        "fcntl",
        "pipe2",
        "read",
        "splice",
        "write",
        "writev",
        /* waiting and time */
        "clock_gettime",
        "epoll_ctl",
        "epoll_pwait",
        "epoll_pwait2",
        "epoll_wait",
        "poll",
        "ppoll",
        "restart_syscall",
        /* memory */
        "brk",
        "futex",
        "madvise",
        "mmap",
        "mprotect",
        "mremap",
        "munmap",
        /* exit */
        "exit",
        "exit_group",
        "getpid",
        "gettid",
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
};

/* The broker opens connections itself, of these families, and its event loop has timers. */
static const char *const allowed_broker[] = {"epoll_create1", "getrandom", "socketpair", "timerfd_create", "timerfd_settime"};
static const int families_broker[] = {AF_INET, AF_INET6};

static void filter_done(scmp_filter_ctx *filter) {
        if (*filter)
                seccomp_release(*filter);
}

static struct nd_error *allow(scmp_filter_ctx filter, const char *const *names, size_t count) {
        for (size_t i = 0; i < count; i++) {
                int number = seccomp_syscall_resolve_name(names[i]), r;

                if (number == __NR_SCMP_ERROR)
                        continue; /* not a system call of this architecture */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
                if (r < 0 && r != -EDOM)
                        return nd_error_new(ND_INTERNAL, -r, "allow system call %s", names[i]);
        }
        return nullptr;
}

static struct nd_error *allow_broker(scmp_filter_ctx filter) {
        nd_try(allow(filter, allowed_broker, nd_count_of(allowed_broker)));
        for (size_t i = 0; i < nd_count_of(families_broker); i++) {
                struct scmp_arg_cmp family = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t) families_broker[i]};
                int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, &family);

                if (r < 0)
                        return nd_error_new(ND_INTERNAL, -r, "allow sockets of a family");
        }
        return nullptr;
}

static struct nd_error *load_filter(bool broker) {
        nd_cleanup(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        struct scmp_arg_cmp own = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t) getpid()};
        int r;

        if (!filter)
                return nd_error_new(ND_INTERNAL, ENOMEM, "create a system call filter");
        nd_try(allow(filter, allowed, nd_count_of(allowed)));
        if (broker)
                nd_try(allow_broker(filter));
        r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, &own); /* abort() */
        if (r == 0)
                r = seccomp_load(filter);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "load the system call filter") : nullptr;
}

static struct nd_error *confine(bool broker) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {};

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "drop privileges");
        return load_filter(broker);
}

struct nd_error *rootless_confine_forwarder(void) {
        return confine(false);
}

struct nd_error *rootless_confine_broker(void) {
        return confine(true);
}
