/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what differs between the architectures, for filters of system calls */
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

/* The second table of system calls of x86-64 begins here (x32); other machines have no such numbers. */
#define ND_CALLS_END 0x40000000

/* Calls that younger architectures do not have: the younger call in their place. */
#ifdef SYS_poll
#define ND_CALL_POLL SYS_poll
#else
#define ND_CALL_POLL SYS_ppoll
#endif
