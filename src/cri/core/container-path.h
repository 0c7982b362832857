/* SPDX-License-Identifier: Apache-2.0 */
/* container-path.h - paths inside a container, as strings: no I/O */
#pragma once

/* Normalizes a container's path: absolute, without "//", "/./", "/../" and a trailing slash. The
 * caller frees it. */
[[nodiscard]] char *cri_container_path_clean(const char *path);

/* Whether a normalized path is the directory or below it. The directory must not be the root. */
[[nodiscard]] bool cri_container_path_within(const char *path, const char *directory);
