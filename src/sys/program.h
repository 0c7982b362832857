/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - where a program is */
#pragma once

#include "base/memory.h"

/* The first executable of that name in a list of directories, written as PATH is; nullptr when there is none. Empty entries, which
 * a shell would take for the current directory, are passed over. */
[[nodiscard]] char *nd_program_find(const char *directories, const char *name);
