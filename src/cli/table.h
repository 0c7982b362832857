/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - aligned columns for people, over libsmartcols; colour only on a terminal */
#pragma once

#include <stddef.h>

struct libscols_table;

struct table {
        struct libscols_table *scols;
        size_t columns;
};

void table_done(struct table *table);
void table_init(struct table *table, const char *const *headings); /* ends with nullptr; a cell may hold several lines */
void table_row(struct table *table, const char *const *cells, const char *colour); /* of the first cell; nullptr = none */
void table_heading(struct table *table, const char *text);
void table_print(struct table *table);
