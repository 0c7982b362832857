/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - files under a directory descriptor, never through a symbolic link */
#pragma once

#include "base/error.h"
#include "base/text.h"
#include "sys/calls.h"
#include "sys/dir.h"

/* Moves a file or directory within one filesystem. Neither directory is synced. */
[[nodiscard]] struct nd_error *nd_file_rename(int old_dir_fd, const char *old_name, int new_dir_fd, const char *new_name);

/* Removes a file without syncing the directory: a power cut may bring it back. A file that is not there is done already. */
[[nodiscard]] struct nd_error *nd_file_unlink(int dir_fd, const char *name);

/* Reads a regular file of at most ceiling bytes. Not a symbolic link, and opening never blocks on a FIFO or device. The result is
 * terminated; ret_length may be nullptr where the text may hold no null byte, and one is then an error. */
[[nodiscard]] struct nd_error *nd_file_read(int dir_fd, const char *path, size_t ceiling, char **ret, size_t *ret_length);

/* As above in a tree that strangers filled: links are followed, but none leads out of root_fd's directory. */
[[nodiscard]] struct nd_error *nd_file_read_inside(int root_fd, const char *path, size_t ceiling, char **ret,
                                                   size_t *ret_length);

/* As above for /proc, /sys and the like, which have no size and may hold anything; follows links. */
[[nodiscard]] struct nd_error *nd_file_read_kernel(const char *path, size_t ceiling, char **ret);

/* Replaces a file so that a reader and a crash see the old or the new contents whole: a temporary file beside it, fsync,
 * rename, fsync of the directory. When this returns without an error the new contents survive a power cut; with an error the
 * old or the new contents may be there, and no temporary file is left (unless removing it failed too). */
[[nodiscard]] struct nd_error *nd_file_replace(int dir_fd, const char *name, const void *bytes, size_t length, mode_t mode);

/* The same without any sync: safe against the death of this process at any instant, not against that of the machine. */
[[nodiscard]] struct nd_error *nd_file_replace_unsynced(int dir_fd, const char *name, const void *bytes, size_t length,
                                                        mode_t mode);
/* Writes a file that need not survive a power cut, in place of one that may be there. Not through a symbolic link. */
[[nodiscard]] struct nd_error *nd_file_write(int dir_fd, const char *path, const void *bytes, size_t length, mode_t mode);

/* Writes one of the kernel's files (/sys, /proc), in one piece. */
[[nodiscard]] struct nd_error *nd_file_write_kernel(const char *path, const char *text);

/* Removes a file and syncs the directory. A file that is not there is done already. */
[[nodiscard]] struct nd_error *nd_file_remove(int dir_fd, const char *name);

/* Names of the temporary files that nd_file_replace() makes start with this; whoever owns a directory may sweep them. */
#define ND_FILE_TEMPORARY ".nodens-"
