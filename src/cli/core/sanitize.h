/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize.h - untrusted text made harmless for a terminal
 *
 * Names, messages and logs come from pods and images. A terminal would obey what is in them: move the cursor, change its title, answer with text that
 * a shell then runs. So every control character becomes a question mark, those above 0x7f and bytes that are no UTF-8 among them; tabs stay. */
#pragma once

#include "base/error.h"
#include "base/text.h"

void cli_sanitize_append(struct nd_text *out, const char *bytes, size_t length);

/* A copy of a string, line ends included in what is replaced; nullptr is "". The caller's to free. */
[[nodiscard]] char *cli_sanitize_text(const char *text);

/* "nodens COMMAND: TEXT" on standard error; returns the exit code 1. */
int cli_sanitize_print_error(const char *command, const struct nd_error *error);
