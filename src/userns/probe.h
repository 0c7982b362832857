/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - does this kernel, on this filesystem, do what user namespaces in pods need?
 *
 * Each probe does the real thing and looks at the result; none compares versions, and none leaves anything behind. Each runs in a
 * child of its own with a deadline, so a dead network filesystem costs seconds, not the caller. nullptr = it works. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A user namespace with 65,536 IDs mapped to a block high up. Needs privilege. */
[[nodiscard]] struct nd_error *nd_probe_userns(void);

/* A user namespace made by an ordinary user who maps only itself. uid (uid_t) -1 = as we are. */
[[nodiscard]] struct nd_error *nd_probe_userns_unprivileged(uid_t uid);

/* An idmapped mount of a directory; the owner seen through it must be the mapped one. */
[[nodiscard]] struct nd_error *nd_probe_idmap(const char *path);

/* The same of a fresh tmpfs: secrets, tokens and memory volumes live there. */
[[nodiscard]] struct nd_error *nd_probe_idmap_tmpfs(void);

/* An overlay whose lower layer is the idmapped directory, as a container's root filesystem is made. */
[[nodiscard]] struct nd_error *nd_probe_overlay(const char *path);

/* The filesystem's name of a path, "?" when it cannot be told in time. Free it. */
[[nodiscard]] char *nd_probe_filesystem(const char *path);

/* Whether an engine stays in the root filesystem when that has a link at /dev: crun before 1.28 makes devices where the link leads (CVE-2026-47766), runc had the same
 * (CVE-2026-41579). Runs it on a bundle of its own. ND_PRECONDITION = it does not stay there; other errors: it could not be tried. */
[[nodiscard]] struct nd_error *nd_probe_engine_dev(const char *program, bool runc, const char *const *environment);
