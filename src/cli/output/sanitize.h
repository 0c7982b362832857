/* SPDX-License-Identifier: Apache-2.0 */
/* sanitize.h - makes untrusted text safe for a terminal
 *
 * Names, messages and logs come from pods and images. A terminal would interpret control sequences
 * in them: move the cursor, change its title, reply with text that a shell then runs. So every
 * control character becomes a question mark, also C1 characters, characters that reorder text, and
 * invalid UTF-8; tabs stay. */
#pragma once

#include "base/error.h"
#include "base/text.h"

void cli_sanitize_append(struct nd_text *out, const char *bytes, size_t length);

/* Returns a sanitized copy of a string, in which newlines are replaced, too; nullptr gives "". The
 * caller frees it. */
[[nodiscard]] char *cli_sanitize_text(const char *text);

/* Prints "nodens COMMAND: TEXT" on standard error; returns the exit status 1. */
int cli_sanitize_print_error(const char *command, const struct nd_error *error);
