/* SPDX-License-Identifier: Apache-2.0 */
/* similar.h - names that were probably meant */
#pragma once

/* True if a name, or its beginning, differs from the word by few letters, or contains the word.
 * Words of fewer than three letters are similar to nothing. */
[[nodiscard]] bool cli_similar(const char *word, const char *name);
