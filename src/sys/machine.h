/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - differences between architectures, for seccomp filters */
#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ND_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ND_AUDIT_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ND_AUDIT_ARCH AUDIT_ARCH_RISCV64
#else
#error "add the architecture here"
#endif

/* The second system call table of x86-64 (x32) begins here; other architectures have none. */
#define ND_CALLS_END 0x40000000

/* System calls that newer architectures lack: the replacement. */
#ifdef SYS_poll
#define ND_CALL_POLL SYS_poll
#else
#define ND_CALL_POLL SYS_ppoll
#endif
