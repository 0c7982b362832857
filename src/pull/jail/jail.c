/* SPDX-License-Identifier: Apache-2.0 */
/* jail.c - see jail.h
 *
 * Theory of operation
 *   pull_jail_set_root() runs in a process that has unshared its mount namespace. The directories
 *   come in as detached copies of the mounts that hold them, taken by descriptor before the old
 *   root is unmounted: ".." in them ends at themselves, and no host path is visible. The supervisor
 *   then enters its user namespace and copies this mount namespace for it: it can make views of
 *   directories for its workers, and has no power over any other mount.
 *   A worker's root is such a view, a detached copy of one directory's mount. The worker cannot
 *   name anything outside, its descriptors do not lead there, and it has no capability to mount or
 *   to change its root again.
 *   The system call filter returns EPERM: a library that tries something new falls back or fails
 *   with an error that is reported, which a kill would hide. */
#include "pull/jail/jail.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "pull/jail/landlock.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/userns.h"

#define NEW_ROOT "/tmp"

enum {
        DESCRIPTORS = 1024,
};

/* System calls of all but stream workers: memory, time, files by descriptor. */
static const char *const calls_files[] = {
        "access",
        "arch_prctl",
        "brk",
        "clock_getres",
        "clock_gettime",
        "clock_nanosleep",
        "close",
        "close_range",
        "dup",
        "dup2",
        "dup3",
        "exit",
        "exit_group",
        "faccessat",
        "faccessat2",
        "fadvise64",
        "fallocate",
        "fcntl",
        "fdatasync",
        "fgetxattr",
        "flistxattr",
        "flock",
        "fstat",
        "fstatfs",
        "fsync",
        "ftruncate",
        "futex",
        "getcwd",
        "getdents64",
        "getegid",
        "geteuid",
        "getgid",
        "getpid",
        "getppid",
        "getrandom",
        "getresgid",
        "getresuid",
        "getrlimit",
        "getrusage",
        "gettid",
        "gettimeofday",
        "getuid",
        "lseek",
        "lstat",
        "madvise",
        "membarrier",
        "mmap",
        "mprotect",
        "mremap",
        "munmap",
        "nanosleep",
        "newfstatat",
        "open",
        "openat",
        "openat2",
        "pread64",
        "preadv",
        "pwrite64",
        "read",
        "readlink",
        "readlinkat",
        "readv",
        "restart_syscall",
        "rseq",
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "rt_sigtimedwait",
        "sched_getaffinity",
        "sched_yield",
        "set_robust_list",
        "set_tid_address",
        "sigaltstack",
        "stat",
        "statfs",
        "statx",
        "sync_file_range",
        "sysinfo",
        "time",
        "umask",
        "uname",
        "unlinkat",
        "write",
        "writev",
};

static const char *const calls_fetcher[] = {
        "bind",        "connect",    "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2", "getpeername",
        "getsockname", "getsockopt", "pipe2",         "poll",      "ppoll",       "pselect6",   "recvfrom", "recvmmsg",
        "recvmsg",     "select",     "sendmmsg",      "sendmsg",   "sendto",      "setsockopt", "shutdown",
};

/* kill() reaches the supervisor's own PID namespace only. */
static const char *const calls_supervisor[] = {
        "capset",  "chdir",  "chroot",    "fchdir", "kill",     "mount_setattr", "open_tree",
        "pipe2",   "poll",   "ppoll",     "prctl",  "recvfrom", "recvmsg",       "seccomp",
        "sendmsg", "sendto", "signalfd4", "syncfs", "tgkill",   "wait4",         "waitid",
};

/* The fetcher creates, writes and removes regular files; everything else in a tree is for workers
 * and the supervisor. */
static const char *const calls_tree[] = {
        "fchmod", "fchmodat", "fchmodat2", "fchown",   "fchownat",  "fremovexattr", "fsetxattr",
        "linkat", "mkdirat",  "mknodat",   "renameat", "renameat2", "symlinkat",    "utimensat",
};

/* System calls that a decompressor and a hash need. */
static const char *const calls_stream[] = {
        "brk",       "clock_gettime", "close",          "exit",         "exit_group",  "fstat",       "futex",  "getpid",
        "getrandom", "gettid",        "madvise",        "mmap",         "mprotect",    "mremap",      "munmap", "pread64",
        "read",      "rt_sigaction",  "rt_sigprocmask", "rt_sigreturn", "sched_yield", "sigaltstack", "write",
};

/* A system call allowed with one value of an argument only. */
struct narrow {
        int number;
        unsigned argument;
        uint64_t value;
};

/* No AF_UNIX: resolvers use it to query their daemons but fall back, and it could reach abstract
 * sockets of the host. */
static const struct narrow narrow_fetcher[] = {
        {SCMP_SYS(socket), 0, AF_INET},
        {SCMP_SYS(socket), 0, AF_INET6},
        {SCMP_SYS(socket), 0, AF_NETLINK}, /* getaddrinfo() lists the address families */
        /* Libraries wake their own threads with it. A pair of streams cannot be connected to
         * anything else, datagram sockets can. */
        {SCMP_SYS(socketpair), 1, SOCK_STREAM},
        {SCMP_SYS(socketpair), 1, SOCK_STREAM | SOCK_CLOEXEC},
        {SCMP_SYS(socketpair), 1, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK},
        {SCMP_SYS(ioctl), 1, FIONBIO},
        {SCMP_SYS(ioctl), 1, FIONREAD},
        {SCMP_SYS(ioctl), 1, TCGETS},
        {SCMP_SYS(prlimit64), 0, 0},
};

static const struct narrow narrow_unpack[] = {
        {SCMP_SYS(prlimit64), 0, 0},
};

/* ---- the root ---- */

static struct nd_error *make_parents(const char *path) {
        nd_autofree char *copy = nd_strdup(path);

        for (char *at = strchr(copy + 1, '/'); at; at = strchr(at + 1, '/')) {
                *at = '\0';
                nd_try(nd_dir_make(AT_FDCWD, copy, 0755));
                *at = '/';
        }
        return nullptr;
}

static struct nd_error *put_file(const struct pull_jail_file *file) {
        nd_autofree char *path = nd_format(NEW_ROOT "%s", file->path);
        nd_autoclose int fd = -EBADF;

        nd_try(make_parents(path));
        fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s' in the jail", file->path);
        for (size_t done = 0; done < file->length;) {
                ssize_t n = nd_sys->write(fd, file->bytes + done, file->length - done);

                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write '%s' in the jail", file->path);
                done += (size_t) n;
        }
        return nullptr;
}

static struct nd_error *put_mount(int tree_fd, const struct pull_jail_mount *mount) {
        nd_autofree char *path = nd_format(NEW_ROOT "%s", mount->path);
        struct mount_attr attributes = {
                .attr_set =
                        MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | (mount->read_only ? MOUNT_ATTR_RDONLY : 0),
                .propagation = MS_PRIVATE,
        };

        nd_try(nd_dir_make(AT_FDCWD, path, 0755));
        if (tree_fd < 0)
                return nullptr;
        if (nd_sys->mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set mount attributes of '%s' in the jail", mount->path);
        return nd_mount_attach(tree_fd, AT_FDCWD, path);
}

/* From here on no path leads to the host. */
static struct nd_error *enter_root(void) {
        if (chdir(NEW_ROOT) < 0 || nd_sys->pivot_root(".", ".") < 0 || nd_sys->umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the root directory of the jail");
        if (nd_sys->mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                          nullptr) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "make the jail's root read-only");
        return nullptr;
}

enum { MOUNTS = 8 };

static struct nd_error *build_root(const struct pull_jail_file *files, size_t file_count, const struct pull_jail_mount *mounts,
                                   size_t mount_count, int trees[static MOUNTS]) {
        /* Copies are taken in the namespace of the descriptors, and attached in our own. */
        for (size_t i = 0; i < mount_count; i++)
                if (mounts[i].fd >= 0)
                        nd_try(nd_mount_clone(mounts[i].fd, "", false, &trees[i]));
        nd_try(nd_mount_namespace_private());
        if (nd_sys->mount("tmpfs", NEW_ROOT, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=16m,mode=755") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "mount the jail's root");
        for (size_t i = 0; i < file_count; i++)
                nd_try(put_file(&files[i]));
        for (size_t i = 0; i < mount_count; i++)
                nd_try(put_mount(trees[i], &mounts[i]));
        return enter_root();
}

struct nd_error *pull_jail_set_root(const struct pull_jail_file *files, size_t file_count,
                                    const struct pull_jail_mount *mounts, size_t mount_count) {
        int trees[MOUNTS] = {-EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF, -EBADF};
        struct nd_error *error;

        if (mount_count > MOUNTS)
                return nd_error_new(ND_INTERNAL, 0, "more than %d mounts for a jail", MOUNTS);
        error = build_root(files, file_count, mounts, mount_count, trees);
        for (size_t i = 0; i < MOUNTS; i++)
                nd_close_fd(&trees[i]);
        return error;
}

/* ---- restrictions ---- */

static struct nd_error *set_limits(void) {
        static const struct {
                int resource;
                rlim_t most;
        } limits[] = {
                {RLIMIT_CORE, 0},
                {RLIMIT_NOFILE, DESCRIPTORS},
                {RLIMIT_AS, JAIL_ADDRESS_SPACE}, /* a build option: sanitizers map terabytes */
                {RLIMIT_MEMLOCK, 0},
        };

        for (size_t i = 0; i < nd_count_of(limits); i++) {
                struct rlimit limit;

                if (getrlimit((__rlimit_resource_t) limits[i].resource, &limit) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "read a resource limit");
                if (limit.rlim_max > limits[i].most)
                        limit.rlim_max = limits[i].most;
                limit.rlim_cur = limit.rlim_max;
                if (setrlimit((__rlimit_resource_t) limits[i].resource, &limit) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "set a resource limit");
        }
        return nullptr;
}

/* Keeps only some capabilities, in every set and in the bounding set. */
static struct nd_error *keep_capabilities(uint64_t keep) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {
                {.effective = (uint32_t) keep, .permitted = (uint32_t) keep},
                {.effective = (uint32_t) (keep >> 32), .permitted = (uint32_t) (keep >> 32)},
        };

        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                if (!(keep & UINT64_C(1) << capability) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "drop capability %d", capability);
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, data) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "drop capabilities");
        return nullptr;
}

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

/* fork() for the supervisor, threads for the fetcher, namespaces for neither. A filter can check
 * the flags of clone but not of clone3, from which libc falls back on ENOSYS. */
static struct nd_error *allow_clone(scmp_filter_ctx filter, bool threads_only) {
        constexpr uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                        CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME;
        uint64_t thread = threads_only ? CLONE_THREAD : 0;
        int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                 SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces | thread, thread));

        if (r == 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "allow system call clone") : nullptr;
}

static struct nd_error *allow_narrow(scmp_filter_ctx filter, const struct narrow *rules, size_t count) {
        for (size_t i = 0; i < count; i++) {
                struct scmp_arg_cmp compare = {.arg = rules[i].argument, .op = SCMP_CMP_EQ, .datum_a = rules[i].value};
                int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rules[i].number, 1, &compare);

                if (r < 0)
                        return nd_error_new(ND_INTERNAL, -r, "allow a system call with an argument");
        }
        return nullptr;
}

/* System calls of one kind of process. */
struct cell {
        bool files, trees;
        enum { NO_CLONE, THREADS, FORKS } clone;
        const char *const *calls;
        size_t call_count;
        const struct narrow *narrow;
        size_t narrow_count;
        /* the only process that it may signal with tgkill(), as abort() does; 0 = given by the
         * list, or none */
        pid_t own;
};

static struct nd_error *fill_filter(const struct cell *cell, scmp_filter_ctx filter) {
        if (cell->files)
                nd_try(allow(filter, calls_files, nd_count_of(calls_files)));
        if (cell->trees)
                nd_try(allow(filter, calls_tree, nd_count_of(calls_tree)));
        nd_try(allow(filter, cell->calls, cell->call_count));
        nd_try(allow_narrow(filter, cell->narrow, cell->narrow_count));
        if (cell->own > 0)
                nd_try(allow_narrow(filter, &(struct narrow) {SCMP_SYS(tgkill), 0, (uint64_t) cell->own}, 1));
        return cell->clone == NO_CLONE ? nullptr : allow_clone(filter, cell->clone == THREADS);
}

static struct nd_error *load_filter(const struct cell *cell) {
        nd_cleanup(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        int r;

        if (!filter)
                return nd_error_new(ND_INTERNAL, ENOMEM, "create a system call filter");
        nd_try(fill_filter(cell, filter));
        r = seccomp_load(filter);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "load the system call filter") : nullptr;
}

/* Compiles the filter into a program for later use. */
static struct nd_error *compile_filter(const struct cell *cell, struct pull_jail_filter *ret) {
        nd_cleanup(filter_done) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
        nd_autofree struct sock_filter *code = nullptr;
        size_t length = 0;
        int r;

        if (!filter)
                return nd_error_new(ND_INTERNAL, ENOMEM, "create a system call filter");
        nd_try(fill_filter(cell, filter));
        r = seccomp_export_bpf_mem(filter, nullptr, &length);
        if (r == 0) {
                code = nd_malloc(length);
                r = seccomp_export_bpf_mem(filter, code, &length);
        }
        if (r < 0 || length / sizeof(struct sock_filter) > BPF_MAXINSNS)
                return nd_error_new(ND_INTERNAL, r < 0 ? -r : E2BIG, "compile a system call filter");
        ret->count = (unsigned short) (length / sizeof(struct sock_filter));
        ret->code = nd_take_ptr(code);
        return nullptr;
}

static struct nd_error *give_up(uint64_t capabilities) {
        nd_try(set_limits());
        nd_try(keep_capabilities(capabilities));
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "set no_new_privs");
        return nullptr;
}

struct nd_error *pull_jail_enter_fetcher(const char *const *writable, size_t count) {
        nd_try(give_up(0));
        nd_try(pull_landlock_fetcher(writable, count));
        return load_filter(&(struct cell) {.files = true,
                                           .clone = THREADS,
                                           .calls = calls_fetcher,
                                           .call_count = nd_count_of(calls_fetcher),
                                           .narrow = narrow_fetcher,
                                           .narrow_count = nd_count_of(narrow_fetcher),
                                           .own = getpid()});
}

static constexpr uint64_t file_capabilities = UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_FOWNER |
                                              UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_DAC_OVERRIDE |
                                              UINT64_C(1) << CAP_SETFCAP;
static constexpr uint64_t supervisor_capabilities =
        file_capabilities | UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_CHROOT | UINT64_C(1) << CAP_SETPCAP;

struct nd_error *pull_jail_enter_supervisor(int userns_fd, struct pull_jail_filters *ret) {
        nd_try(compile_filter(&(struct cell) {.calls = calls_stream, .call_count = nd_count_of(calls_stream)},
                              &ret->of[JAIL_STREAM]));
        nd_try(compile_filter(&(struct cell) {.files = true, .trees = true}, &ret->of[JAIL_TREE]));
        if (nd_sys->setns(userns_fd, CLONE_NEWUSER) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the unpacker's user namespace");
        if (nd_sys->unshare(CLONE_NEWNS) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the unpacker's mount namespace");
        nd_try(give_up(supervisor_capabilities));
        /* Includes the calls of workers, which inherit the supervisor's filter. */
        return load_filter(&(struct cell) {.files = true,
                                           .trees = true,
                                           .clone = FORKS,
                                           .calls = calls_supervisor,
                                           .call_count = nd_count_of(calls_supervisor),
                                           .narrow = narrow_unpack,
                                           .narrow_count = nd_count_of(narrow_unpack)});
}

struct nd_error *pull_jail_enter_worker(const struct pull_jail_filters *filters, enum pull_jail_worker kind, int root_fd) {
        const struct pull_jail_filter *filter = &filters->of[kind];
        const struct sock_fprog program = {.len = filter->count, .filter = filter->code};

        if (fchdir(root_fd) < 0 || chroot(".") < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter a worker's root directory");
        nd_try(keep_capabilities(kind == JAIL_TREE ? file_capabilities : 0));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "load a worker's system call filter");
        return nullptr;
}

struct nd_error *pull_jail_clone_mount(const char *path, bool read_only, int *ret_fd) {
        struct mount_attr attributes = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
                                                    (read_only ? MOUNT_ATTR_RDONLY : 0)};
        nd_autoclose int fd = -EBADF;

        nd_try(nd_mount_clone(AT_FDCWD, path, false, &fd));
        if (nd_sys->mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set mount attributes of a copy of '%s'", path);
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *identity(const char *kind, struct nd_userns_maps *ret) {
        nd_try(nd_userns_maps_own(kind, ret));
        nd_vector_each (map, ret) {
                map->outside = map->inside;
        }
        return nullptr;
}

struct nd_error *pull_jail_open_userns(int *ret_fd) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps uids = {}, gids = {};

        nd_try(identity("uid", &uids));
        nd_try(identity("gid", &gids));
        return nd_error_wrap(nd_userns_make(&(struct nd_userns_plan) {.uids = uids.items,
                                                                      .uid_count = uids.count,
                                                                      .gids = gids.items,
                                                                      .gid_count = gids.count},
                                            ret_fd),
                             "create the unpacker's user namespace");
}
