/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - files under a directory descriptor, never through a symbolic link */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/dir.h"

/* Moves a file or directory within one filesystem. Neither directory is synced. */
[[nodiscard]] struct nd_error *nd_file_rename(int old_dir_fd, const char *old_name, int new_dir_fd, const char *new_name);

/* Removes a file without syncing the directory: after a power cut it may be back. A missing file is
 * fine. */
[[nodiscard]] struct nd_error *nd_file_unlink(int dir_fd, const char *name);

/* Reads a regular file of at most ceiling bytes. Not a symbolic link, and opening never blocks on a
 * FIFO or device. The result is terminated; with ret_length nullptr a null byte in the text is an
 * error. */
[[nodiscard]] struct nd_error *nd_file_read(int dir_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length);

/* As above, and links are followed: for files of the user who runs the program. */
[[nodiscard]] struct nd_error *nd_file_read_linked(int dir_fd, const char *path, size_t ceiling, char **ret,
                                                   size_t *ret_length);

/* Reads what a user names on the command line: links are followed, pipes and devices are read to
 * their end, and opening and reading may block. */
[[nodiscard]] struct nd_error *nd_file_read_any(const char *path, size_t ceiling, char **ret, size_t *ret_length);

/* As nd_file_read() in an untrusted tree: links are followed, but none may leave root_fd's
 * directory. */
[[nodiscard]] struct nd_error *nd_file_read_inside(int root_fd, const char *path, size_t ceiling, char **ret,
                                                   size_t *ret_length);

/* As above for /proc, /sys and the like, which have no size and may contain anything; follows
 * links. */
[[nodiscard]] struct nd_error *nd_file_read_kernel(const char *path, size_t ceiling, char **ret);

/* Replaces a file so that a reader or a crash sees the complete old or the complete new contents: a
 * temporary file beside it, fsync, rename, fsync of the directory. After success the new contents
 * survive a power cut; after an error the old or the new contents are there, and no temporary file
 * is left (unless removing it failed too). */
[[nodiscard]] struct nd_error *nd_file_replace(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode);

/* The same without any sync: safe if this process dies at any instant, not if the host does. */
[[nodiscard]] struct nd_error *nd_file_replace_unsynced(int dir_fd, const char *name, const void *bytes, size_t length,
                                                        mode_t mode);
/* Writes a file that need not survive a power cut, replacing an existing one. Not through a
 * symbolic link. */
[[nodiscard]] struct nd_error *nd_file_write(int dir_fd, const char *path, const void *bytes, size_t length, mode_t mode);

/* Sets owner and mode of an existing file. Not through a symbolic link. */
[[nodiscard]] struct nd_error *nd_file_give(int dir_fd, const char *path, uid_t uid, gid_t gid, mode_t mode);

/* Writes a kernel file (/sys, /proc) with one write(). */
[[nodiscard]] struct nd_error *nd_file_write_kernel(const char *path, const char *text);

/* Removes a file and syncs the directory. A missing file is fine. */
[[nodiscard]] struct nd_error *nd_file_remove(int dir_fd, const char *name);

/* Prefix of the temporary files of nd_file_replace(); the owner of a directory may remove
 * leftovers. */
#define ND_FILE_TEMPORARY ".nodens-"

/* Opens /dev/null as a standard stream of a program, with O_RDONLY or O_RDWR; close-on-exec. OCI
 * runtimes give standard streams to the container's user: crun calls fchown() on each that is
 * not a terminal. With the host's own /dev/null the pod's root would become its owner and could
 * change its mode for the whole host. So it is opened through a read-only mount of our own, on
 * which the kernel refuses to change owner and mode; the device can still be read and written.
 * Without the privilege to mount, and then none to change the owner either, it is a plain
 * descriptor. */
[[nodiscard]] struct nd_error *nd_file_open_null(int flags, int *ret_fd);
