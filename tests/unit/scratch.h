/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.h - directories for tests, on a real disk
 *
 * Under $TMPDIR or, since /tmp may be in memory, under /var/tmp. A test that passes leaves nothing
 * there. */
#pragma once

#include "base/memory.h"

char *scratch_make(void); /* a new directory's path */
void scratch_remove(char **path);
#define scratch_directory nd_cleanup(scratch_remove) char *

/* Files below a scratch directory; the name is joined to it. All of these abort when the system
 * refuses. */
void scratch_write(const char *directory, const char *name, const void *bytes, size_t length);
void scratch_text(const char *directory, const char *name, const char *text);
/* Nullptr if the file does not exist. */
char *scratch_read(const char *directory, const char *name);
/* And its parents below the directory. */
void scratch_mkdir(const char *directory, const char *name);
bool scratch_has(const char *directory, const char *name);
/* How many names a directory holds. */
size_t scratch_entries(const char *directory, const char *name);

/* For tests that mount or count mounts, before they make a scratch directory: a mount namespace of
 * their own without the mounts of other tests. Does nothing without root. */
void scratch_private_mounts(void);
