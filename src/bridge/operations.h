/* SPDX-License-Identifier: Apache-2.0 */
/* operations.h - the requests of the FUSE protocol, on the volume's filesystem
 *
 * Each function works on one request and sends its reply. @node is the node of the request's head,
 * with a descriptor. */
#pragma once

#include <sys/stat.h>

#include "bridge/thread.h"

/* names.c: entries of directories */
void bridge_lookup(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_link(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_unlink(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_rename(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);

/* The inode that has this name; 0 = none. */
uint64_t bridge_inode_of(const struct bridge_node *parent, const char *name);
/* Replies with the file that has the request's name. */
void bridge_reply_looked_up(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *parent);

/* create.c */
void bridge_make(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_create(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);

/* attributes.c */
void bridge_getattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_setattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_readlink(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_statfs(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_syncfs(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);

/* xattr.c */
void bridge_xattr(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);

/* files.c: open files. @node is nullptr for requests that name an open file. */
void bridge_open(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_read(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_write(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_flush(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_fsync(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_fallocate(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_lseek(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_copy(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_release(struct bridge_thread *thread, const struct bridge_request *request);

/* Flags for the open of a backing file. */
int bridge_file_flags(const struct bridge_thread *thread, int flags);
/* The permissions that are left after a write by a process without CAP_FSETID. */
static inline mode_t bridge_mode_after_write(mode_t mode) {
        return mode & 07777 & ~(mode_t) (S_ISUID | (mode & S_IXGRP ? S_ISGID : 0));
}
/* Consumes a descriptor and returns the kernel's handle of the open file; 0 = too many are open. */
[[nodiscard]] uint64_t bridge_file_add(struct bridge_thread *thread, struct bridge_node *node, int fd);
/* Consumes the descriptor of an opened file: registers it, for passthrough where that works. */
[[nodiscard]] int bridge_file_opened(struct bridge_thread *thread, struct bridge_node *node, int fd, const struct stat *st,
                                     struct fuse_open_out *ret);
/* The descriptor of an open file, or -EBADF. */
int bridge_file_fd(const struct bridge_thread *thread, uint64_t handle);

/* directory.c */
void bridge_opendir(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);
void bridge_readdir(struct bridge_thread *thread, const struct bridge_request *request, struct bridge_node *node);

/* locks.c */
void bridge_lock(struct bridge_thread *thread, const struct bridge_request *request);
void bridge_lock_unlock_all(struct bridge_thread *thread, uint64_t node, uint64_t owner);
void bridge_lock_interrupt(struct bridge_thread *thread, const struct bridge_request *request);
/* Before there are other threads: waits again for the locks that an earlier server waited for. */
void bridge_lock_resume(struct bridge_state *state);
/* For the main thread: ends waits that FUSE_INTERRUPT asks to end. */
[[noreturn]] void bridge_lock_interrupt_loop(void);
