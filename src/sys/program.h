/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - finds executables */
#pragma once

#include "base/memory.h"

/* The first executable of that name in a list of directories like PATH, or nullptr. Empty entries,
 * which a shell treats as the current directory, are skipped. */
[[nodiscard]] char *nd_program_find(const char *directories, const char *name);
