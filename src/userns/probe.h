/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - probes whether this kernel, on this filesystem, supports user namespaces in pods
 *
 * Each probe performs the real operation and checks the result; none compares versions, and none
 * leaves anything behind. Each runs in a child of its own with a timeout, so a dead network
 * filesystem costs seconds and does not block the caller. nullptr = supported. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "sys/userns.h"

enum {
        ND_PROBE_S = 5, /* timeout of a probe */
};

/* The block of IDs that probes map to: 65,536 where our own namespace has them, else what it has.
 * ND_PRECONDITION if it has one ID only. */
[[nodiscard]] struct nd_error *nd_probe_map(struct nd_userns_map *ret);

/* A user namespace with these IDs. Needs privilege. */
[[nodiscard]] struct nd_error *nd_probe_userns(void);

/* A user namespace of an unprivileged user who maps only itself. uid (uid_t) -1 = the current
 * user. */
[[nodiscard]] struct nd_error *nd_probe_userns_unprivileged(uid_t uid);

/* An idmapped mount of a directory; the owner seen through it must be the mapped one. */
[[nodiscard]] struct nd_error *nd_probe_idmap(const char *path);

/* The same on a new tmpfs, which secrets, tokens and memory volumes use. */
[[nodiscard]] struct nd_error *nd_probe_idmap_tmpfs(void);

/* An overlay whose lower layer is the idmapped directory, like a container's root filesystem. */
[[nodiscard]] struct nd_error *nd_probe_overlay(const char *path);

/* Whether a directory exists and its filesystem responds: ND_DEADLINE if it does not. */
[[nodiscard]] struct nd_error *nd_probe_directory(const char *path);

/* Returns the type of the filesystem of a path, as in the mount table, "?" if it cannot be
 * determined in time. Free it. */
[[nodiscard]] char *nd_probe_filesystem(const char *path);

/* Whether an engine stays in the root filesystem if that has a link at /dev: crun before 1.28
 * creates devices at the target of the link (CVE-2026-47766), and runc had the same flaw
 * (CVE-2026-41579). Runs the engine on a bundle of its own. ND_PRECONDITION = it leaves the root
 * filesystem; other errors: it could not be tried. */
[[nodiscard]] struct nd_error *nd_probe_engine_dev(const char *program, bool runc, const char *const *environment);
