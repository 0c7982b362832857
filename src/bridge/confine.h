/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - gives up what a server does not need
 *
 * It keeps what a file server needs: to read, write, create and give away any file of one volume.
 * Its mount namespace is empty, and the system call filter allows neither mounts nor sockets nor
 * other programs. */
#pragma once

#include "base/error.h"
#include "bridge/settings.h"

/* @directory: any existing directory. */
[[nodiscard]] struct nd_error *bridge_confine(const struct bridge_settings *settings, const char *directory);
