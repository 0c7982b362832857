/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - see confine.h */
#include "mon/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sys/calls.h"
#include "sys/machine.h"

enum {
        LAST_CAPABILITY = 63,
};

/* ---- system calls ---- */

static const int allowed[] = {
        /* waiting for events and children */
        ND_CALL_POLL, SYS_ppoll, SYS_wait4, SYS_waitid, SYS_clock_gettime, SYS_restart_syscall,
        /* streams, the log, the record */
        SYS_read, SYS_write, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_ftruncate, SYS_fstat, SYS_newfstatat, SYS_close,
        SYS_fcntl, SYS_openat2, /* reopens the log */
        /* the daemon and clients */
        SYS_accept4, SYS_getsockopt, SYS_recvfrom, SYS_recvmsg, SYS_sendmsg, SYS_sendto, SYS_shutdown, SYS_geteuid,
        /* memory */
        SYS_brk, SYS_madvise, SYS_mremap, SYS_munmap,
        /* exit */
        SYS_exit, SYS_exit_group, SYS_futex, SYS_getpid, SYS_gettid, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
        SYS_sigaltstack, /* of a sanitizer, in builds with one */
};

static const struct nd_call_condition conditional[] = {
        {SYS_ioctl, ND_CALL_EQUAL, 1, TIOCSWINSZ},
        {SYS_mmap, ND_CALL_WITHOUT, 2, PROT_EXEC},
        {SYS_mprotect, ND_CALL_WITHOUT, 2, PROT_EXEC},
};

const struct nd_call_filter mon_confine_filter = {allowed, nd_count_of(allowed), conditional, nd_count_of(conditional)};

/* ---- the filesystem ---- */

/* Allows creating and writing files below the log's directory; denies opening, creating, removing
 * or executing all others. A seccomp filter cannot check paths. */
static struct nd_error *close_filesystem(int log_directory) {
        const struct landlock_ruleset_attr all = {
                .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
                                     LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
        const struct landlock_path_beneath_attr logs = {
                .allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG, .parent_fd = log_directory};
        nd_autoclose int rules = (int) syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);

        if (rules < 0) /* not in this kernel, or denied by an outer container */
                return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM
                               ? nullptr
                               : nd_error_new(ND_INTERNAL, errno, "create a Landlock ruleset");
        if (log_directory >= 0 && syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &logs, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "allow the log directory in Landlock rules");
        if (syscall(SYS_landlock_restrict_self, rules, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "enforce Landlock rules");
        return nullptr;
}

/* ---- capabilities ---- */

static int set_capabilities(uint64_t permitted, uint64_t effective) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {
                {.permitted = (uint32_t) permitted, .effective = (uint32_t) effective},
                {.permitted = (uint32_t) (permitted >> 32), .effective = (uint32_t) (effective >> 32)},
        };

        return (int) syscall(SYS_capset, &header, data);
}

/* Returns whether we may create files in the log's directory without capabilities. */
static bool may_make_log(const struct mon_log *log) {
        const char *slash = log->directory >= 0 ? strrchr(log->path, '/') : nullptr;
        struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
        nd_autofree char *parent = slash ? nd_strndup(log->path, (size_t) (slash - log->path)) : nd_strdup(".");
        nd_autoclose int fd = -EBADF;

        if (log->directory < 0)
                return true;
        fd = nd_sys->openat2(log->directory, parent, &how, sizeof how);
        return fd >= 0 && faccessat(fd, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

/* Drops all capabilities. A log in a directory of another user keeps the capability needed to
 * reopen the log. */
static struct nd_error *drop_capabilities(const struct mon_log *log) {
        static constexpr uint64_t passage = UINT64_C(1) << CAP_DAC_OVERRIDE;
        bool fits;

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for (unsigned i = 0; i <= LAST_CAPABILITY; i++)
                /* Fails for capabilities that the kernel does not know, and without CAP_SETPCAP. */
                (void) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        if (set_capabilities(passage, 0) < 0)
                return set_capabilities(0, 0) < 0 ? nd_error_new(ND_INTERNAL, errno, "drop capabilities") : nullptr;
        fits = may_make_log(log);
        if (set_capabilities(fits ? 0 : passage, fits ? 0 : passage) < 0)
                return nd_error_new(ND_INTERNAL, errno, "drop capabilities");
        return nullptr;
}

struct nd_error *mon_confine(const struct mon_log *log) {
        nd_try(drop_capabilities(log));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "set no_new_privs");
        nd_try(close_filesystem(log->directory));
        return nd_call_filter_load(&mon_confine_filter);
}
