/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - see confine.h */
#include "bridge/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sys/call-filter.h"
#include "sys/calls.h"
#include "sys/machine.h"
#include "sys/mount.h"

enum {
        LAST_CAPABILITY = 63,
};

/* ---- system calls ---- */

static const int allowed[] = {
        /* requests, and data that is not passed through */
        SYS_read,
        SYS_write,
        SYS_writev,
        SYS_pread64,
        SYS_pwrite64,
        SYS_copy_file_range,
        SYS_lseek,
        SYS_fallocate,
        SYS_ftruncate,
        SYS_fsync,
        SYS_fdatasync,
        SYS_syncfs,
        /* files, by descriptor */
        SYS_openat,
        SYS_open_by_handle_at,
        SYS_name_to_handle_at,
        SYS_close,
        SYS_close_range,
        SYS_fstat,
        SYS_newfstatat,
        SYS_statx,
        SYS_fstatfs,
        SYS_getdents64,
        SYS_readlinkat,
        SYS_fchdir,
        SYS_fcntl,
        SYS_flock,
        SYS_umask,
        SYS_getcwd,
        /* changes */
        SYS_mkdirat,
        SYS_mknodat,
        SYS_symlinkat,
        SYS_linkat,
        SYS_unlinkat,
        SYS_renameat2,
        SYS_fchownat,
        SYS_fchmod,
        SYS_fchmodat,
        SYS_utimensat,
        SYS_getxattr,
        SYS_setxattr,
        SYS_listxattr,
        SYS_removexattr,
        /* credentials of a thread */
        SYS_setfsuid,
        SYS_setfsgid,
        SYS_setgroups,
        SYS_capget,
        SYS_capset,
        /* processes and threads */
        SYS_clone3,
        SYS_set_robust_list,
        SYS_rseq,
        SYS_set_tid_address,
        SYS_futex,
        SYS_gettid,
        SYS_getpid,
        SYS_tgkill,
        SYS_pidfd_open,
        SYS_pidfd_send_signal,
        ND_CALL_POLL,
        SYS_ppoll,
        SYS_clock_gettime,
        SYS_clock_nanosleep,
        SYS_restart_syscall,
        SYS_exit,
        SYS_exit_group,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_sigaltstack,
        SYS_sched_yield,
        SYS_sched_getaffinity, /* glibc, for a thread of a sanitizer */
        SYS_getrandom,
        /* memory */
        SYS_brk,
        SYS_madvise,
        SYS_mremap,
        SYS_munmap,
};

static const struct nd_call_condition conditional[] = {
        {SYS_ioctl, ND_CALL_EQUAL, 1, (uint32_t) FUSE_DEV_IOC_BACKING_OPEN},
        {SYS_ioctl, ND_CALL_EQUAL, 1, (uint32_t) FUSE_DEV_IOC_BACKING_CLOSE},
        {SYS_mmap, ND_CALL_WITHOUT, 2, PROT_EXEC},
        {SYS_mprotect, ND_CALL_WITHOUT, 2, PROT_EXEC},
        {SYS_unshare, ND_CALL_EQUAL, 0, CLONE_FS},
};

static const struct nd_call_filter filter = {allowed, nd_count_of(allowed), conditional, nd_count_of(conditional)};

/* ---- capabilities ---- */

static struct nd_error *drop_capabilities(const struct bridge_settings *settings) {
        static const int kept[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
                                   CAP_FSETID, CAP_SETGID,       CAP_SETUID,          CAP_SETFCAP};
        struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};
        uint32_t mask = settings->passthrough ? 1u << CAP_SYS_ADMIN : 0; /* to register files */

        for (size_t i = 0; i < nd_count_of(kept); i++)
                mask |= 1u << kept[i];
        /* Capabilities stay when a thread changes its filesystem IDs. */
        if (prctl(PR_SET_SECUREBITS,
                  SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "set securebits");
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        for (unsigned i = 0; i <= LAST_CAPABILITY; i++)
                /* Fails for capabilities that the kernel does not know. */
                (void) prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
        data[0].permitted = data[0].effective = mask;
        if (syscall(SYS_capset, &head, data) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "drop capabilities");
        return nullptr;
}

struct nd_error *bridge_confine(const struct bridge_settings *settings, const char *directory) {
        nd_try(nd_mount_namespace_private());
        nd_try(nd_mount_namespace_empty(directory));
        nd_try(drop_capabilities(settings));
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "set no_new_privs");
        return nd_call_filter_load(&filter);
}
