/* SPDX-License-Identifier: Apache-2.0 */
/* faults.h - a table of system calls in which the n-th call of one kind fails
 *
 * Theory of operation
 *   faults_arm() puts our table into nd_sys and sets which call fails, at which count and with
 *   which errno. The counters live in memory that is shared with children, since workers and the
 *   makers of namespaces do half of their calls in a child: a call counts at every call site. Calls
 *   of libc itself or of an executed program are not counted. A torture test raises the count until
 *   the operation passes without a fault; only then has every call failed once. */
#pragma once

#include "sys/calls.h"

enum fault_call {
        FAULT_OPENAT,
        FAULT_WRITE,
        FAULT_FSYNC,
        FAULT_RENAMEAT,
        FAULT_UNLINKAT,
        FAULT_MKDIRAT,
        FAULT_OPEN_TREE,
        FAULT_MOVE_MOUNT,
        FAULT_MOUNT_SETATTR,
        FAULT_FSOPEN,
        FAULT_FSCONFIG,
        FAULT_FSMOUNT,
        FAULT_MOUNT,
        FAULT_CLONE3,
        FAULT_UNSHARE,
        FAULT_PIPE2,
        FAULT_PIDFD_SEND_SIGNAL,
        FAULT_PWRITE,
        FAULT_FTRUNCATE,
        FAULT_FCHMOD,
        FAULT_FCHOWN,
        FAULT_FCHOWNAT,
        FAULT_FCHMODAT,
        FAULT_UTIMENSAT,
        FAULT_SYMLINKAT,
        FAULT_LINKAT,
        FAULT_MKNODAT,
        FAULT_FSETXATTR,
        FAULT_SYNCFS,
        FAULT_UMOUNT2,
        FAULT_PIVOT_ROOT,
        FAULT_SETNS,
        FAULT_CALLS,
};

const char *fault_name(enum fault_call call);

/* The nth call (from 1) of this kind fails; with `onwards` all after it too. Removes what was armed
 * before. */
void faults_arm(enum fault_call call, unsigned nth, int error_number, bool onwards);

/* A second fault beside the armed one: every call of this kind fails. */
void faults_also(enum fault_call call, int error_number);

/* The n-th changing call of any kind kills the process that makes it, before it is made. */
void faults_kill_at(unsigned nth);

/* At most so many bytes are taken by one write. */
void faults_short_writes(size_t most);

/* Puts the real table back; true when the armed fault was met. */
bool faults_disarm(void);
