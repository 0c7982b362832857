/* SPDX-License-Identifier: Apache-2.0 */
/* container-path.h - paths inside a container, as text: no file is looked at */
#pragma once

/* A container's path without "//", "/./", "/../" and a slash at the end; absolute. The caller's to free. */
[[nodiscard]] char *cri_container_path_clean(const char *path);

/* Whether a clean path is the directory or leads below it; for a directory that is not the root. */
[[nodiscard]] bool cri_container_path_within(const char *path, const char *directory);
