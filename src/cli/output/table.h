/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - prints tables that fit the terminal, with libsmartcols
 *
 * On a terminal that is too narrow, the widest column that can be wrapped or shortened gives way
 * first; if that does not suffice, the least important columns are left out. Elsewhere (a pipe, a
 * file) everything is printed. Cells may be untrusted text. */
#pragma once

#include <stddef.h>

#include "base/vector.h"

enum cli_column_kind {
        COLUMN_WHOLE,   /* an ID or a word, never shortened */
        COLUMN_NUMBER,  /* the same, aligned right */
        COLUMN_SHORTEN, /* a name or a path, loses its middle */
        COLUMN_WRAP,    /* a sentence, which may have several lines */
};

struct cli_column {
        const char *heading; /* nullptr ends a list */
        enum cli_column_kind kind;
        unsigned least; /* columns of the terminal that a shortened or wrapped one keeps */
        unsigned drop;  /* left out on a narrow terminal, highest first; 0 = never */
};

struct cli_table_row {
        char **cells;
        const char *colour; /* of the first cell; nullptr = none */
        bool heading;
};

struct cli_table {
        struct cli_column *columns;
        size_t count;
        nd_vector(struct cli_table_row) rows;
        size_t width; /* of the terminal; 0 = unlimited */
};

void cli_table_done(struct cli_table *table);
/* Headings end with nullptr. The last column is wrapped, the others are whole. */
void cli_table_init(struct cli_table *table, const char *const *headings);
void cli_table_init_columns(struct cli_table *table, const struct cli_column *columns);
/* A cell may be nullptr. */
void cli_table_row(struct cli_table *table, const char *const *cells,
                   const char *colour); /* of the first cell; nullptr = none */
void cli_table_heading(struct cli_table *table, const char *text);

/* Returns the finished table, or "" without rows. The caller frees it. */
[[nodiscard]] char *cli_table_text(const struct cli_table *table);

void cli_table_print(const struct cli_table *table);
/* The same; without rows the note, such as "no pods", goes to standard error. */
void cli_table_print_or_note(const struct cli_table *table, const char *note);
