/* SPDX-License-Identifier: Apache-2.0 */
/* width.h - text measured in columns of a terminal
 *
 * A character takes one column, two (wide ones, as in Chinese) or none (a combining mark, which
 * belongs to the character before it). Names come from pods and images: cli_width_clean() makes
 * them safe and measurable first, and the other functions take only its result. */
#pragma once

#include <stddef.h>

/* Whether the user's encoding is UTF-8. In others every character that is not ASCII is printed as a
 * question mark. */
[[nodiscard]] bool cli_width_utf8(void);

/* Returns a copy without control characters, invisible or reordering ones, and bytes that the
 * encoding does not have: each becomes a question mark. A tab becomes a blank. lines keeps
 * newlines. The caller frees it. */
[[nodiscard]] char *cli_width_clean(const char *text, bool lines);

/* The columns of the widest line. */
[[nodiscard]] size_t cli_width_of(const char *text);

/* Returns one line in at most so many columns. Text that does not fit loses its middle, in favour
 * of an ellipsis: names differ at both ends. The caller frees it. */
[[nodiscard]] char *cli_width_shorten(const char *text, size_t columns);

/* Returns the beginning of one line. The caller frees it. */
[[nodiscard]] char *cli_width_clip(const char *line, size_t length, size_t columns);

/* Returns the text with newlines between words, so that no line is wider. A word that is wider is
 * broken. The caller frees it. */
[[nodiscard]] char *cli_width_wrap(const char *text, size_t columns);
