/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.h - the host's cgroup hierarchy, our place in it, and its files
 *
 * Only cgroup v2. Paths are below the mount and begin with a slash, as in /proc/<pid>/cgroup. */
#pragma once

#include <stdint.h>

#include "base/error.h"

#define ND_CGROUP_MOUNT "/sys/fs/cgroup"

enum nd_cgroup_layout {
        ND_CGROUP_NONE,   /* nothing is mounted at /sys/fs/cgroup */
        ND_CGROUP_LEGACY, /* v1, or v1 with a v2 tree beside it ("hybrid") */
        ND_CGROUP_UNIFIED,
};

struct nd_cgroup {
        enum nd_cgroup_layout layout;
        char *own;         /* our path below the mount, "/" for the root; nullptr unless unified */
        char *controllers; /* of the root of what we see, space-separated; nullptr unless unified */
        char *delegated;   /* controllers of our own cgroup */
        bool writable;     /* we may create children in our own cgroup */
};

void nd_cgroup_done(struct nd_cgroup *cgroup);
[[nodiscard]] struct nd_error *nd_cgroup_discover(struct nd_cgroup *ret);

/* The v2 path in the text of /proc/<pid>/cgroup ("0::/a/b"), or nullptr. */
[[nodiscard]] char *nd_cgroup_path_of(const char *text);

/* Whether a space-separated list contains a word. */
[[nodiscard]] bool nd_cgroup_has(const char *controllers, const char *name);

/* The path of a slice, from its name: systemd keeps "a-b.slice" in "a.slice". nullptr if the name
 * is invalid or the path would be too long. */
[[nodiscard]] char *nd_cgroup_slice(const char *name);

/* ---- files ---- */

enum {
        ND_CGROUP_FILE = 16 * 1024, /* maximum size of a file that we read; memory.stat has 2 KiB */
};

/* The value of a key in lines "key value"; false if it is absent or not a number. */
[[nodiscard]] bool nd_cgroup_key(const char *text, const char *key, uint64_t *ret);

/* The sum of a key over lines like "8:0 rbytes=1 wbytes=2" (io.stat). False if no line has it. */
[[nodiscard]] bool nd_cgroup_sum(const char *text, const char *key, uint64_t *ret);

/* A file with one number; "max" is UINT64_MAX. */
[[nodiscard]] bool nd_cgroup_number(const char *text, uint64_t *ret);

/* Opens a cgroup; ND_NOT_FOUND if it does not exist. */
[[nodiscard]] struct nd_error *nd_cgroup_open(const char *path, int *ret_fd);

/* Reads a file of a cgroup into the buffer, NUL-terminated; false if the file or the cgroup does
 * not exist. */
[[nodiscard]] bool nd_cgroup_read(int cgroup, const char *file, char text[static ND_CGROUP_FILE]);

/* ---- children ---- */

/* Creates a cgroup below another one; an existing one is an error. */
[[nodiscard]] struct nd_error *nd_cgroup_make(int parent, const char *name);

/* Kills every process in it and below. Succeeds if the cgroup no longer exists. */
[[nodiscard]] struct nd_error *nd_cgroup_kill(int cgroup);

/* Moves the processes of a child to another cgroup, so that the child can be removed; processes
 * forked meanwhile stay. */
void nd_cgroup_lift(int parent, const char *name, int target);

/* Removes a child and its descendants, all without processes. False while one still has some. */
[[nodiscard]] bool nd_cgroup_remove(int parent, const char *name);

/* Kills every process in a cgroup and below, waits until they have exited, and removes it. Succeeds
 * if it does not exist. Blocks as long as the kernel needs to end a process, at most deadline_us:
 * ND_DEADLINE. */
[[nodiscard]] struct nd_error *nd_cgroup_clear(const char *path, uint64_t deadline_us);
