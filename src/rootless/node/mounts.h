/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h - mounts the bind plan in two steps: the read-only binds in the builder's mount
 * namespace, the rest in init's copy of it */
#pragma once

#include "rootless/node/bindplan.h"

/* Runs in the builder, which is root of an outer user namespace: moves the host's root aside and
 * makes the mounts that the node must not be able to change. */
[[nodiscard]] struct nd_error *rootless_mounts_prepare(const struct rootless_bindplan *plan);

/* Runs in init, which the builder has cloned after that: makes the other mounts and unmounts
 * everything else. */
[[nodiscard]] struct nd_error *rootless_mounts_enter(const struct rootless_bindplan *plan);

/* Replaces a file in the node's /etc that the plan has written. */
[[nodiscard]] struct nd_error *rootless_mounts_write_file(const char *path, const char *text);
