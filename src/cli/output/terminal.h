/* SPDX-License-Identifier: Apache-2.0 */
/* terminal.h - what the terminal on standard output is and can do */
#pragma once

#include <stddef.h>

struct cli_terminal {
        size_t rows, columns;
};

/* Returns false if standard output is not a terminal. A terminal that does not report its size has
 * that of the environment (LINES, COLUMNS), else 24 rows of 80 columns. */
[[nodiscard]] bool cli_terminal_size(struct cli_terminal *ret);

/* Whether standard output is a terminal that can move its cursor. */
[[nodiscard]] bool cli_terminal_has_cursor(void);

/* Whether output may be coloured: https://no-color.org. */
[[nodiscard]] bool cli_terminal_has_colour(void);
