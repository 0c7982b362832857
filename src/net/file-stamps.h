/* SPDX-License-Identifier: Apache-2.0 */
/* file-stamps.h - whether files that are polled have changed
 *
 * Files that are missing, or whose path is nullptr, have an empty stamp. */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

void nd_file_stamps_take(const char *const *paths, size_t count, struct stat *ret);
[[nodiscard]] bool nd_file_stamps_equal(const struct stat *a, const struct stat *b, size_t count);
