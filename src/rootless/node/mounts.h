/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h - makes the bind plan true, in two steps: the read-only binds in the builder's mount namespace, the rest in init's copy of it */
#pragma once

#include "rootless/node/bindplan.h"

/* Runs in the builder, which is root of an outer user namespace: moves the machine's root aside and makes what the node must not be able to change. */
[[nodiscard]] struct nd_error *rootless_mounts_prepare(const struct rootless_bindplan *plan);

/* Runs in init, which the builder has cloned after that: makes the rest, and leaves nothing else to be seen. */
[[nodiscard]] struct nd_error *rootless_mounts_enter(const struct rootless_bindplan *plan);

/* Replaces a file of the node's /etc that the plan has written. */
[[nodiscard]] struct nd_error *rootless_mounts_write_file(const char *path, const char *text);
