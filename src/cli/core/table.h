/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - prints tables with libsmartcols; colour only on a terminal */
#pragma once

#include <stddef.h>

struct libscols_table;

struct cli_table {
        struct libscols_table *scols;
        size_t columns;
};

void cli_table_done(struct cli_table *table);
/* terminated by nullptr; a cell may have several lines */
void cli_table_init(struct cli_table *table, const char *const *headings);
void cli_table_row(struct cli_table *table, const char *const *cells,
                   const char *colour); /* of the first cell; nullptr = none */
void cli_table_heading(struct cli_table *table, const char *text);
void cli_table_print(struct cli_table *table);
