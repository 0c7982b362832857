/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"

static void out_of_memory(void) {
        fputs("nodens: out of memory\n", stderr);
        abort();
}

void cli_table_done(struct cli_table *table) {
        scols_unref_table(table->scols);
        table->scols = nullptr;
}

void cli_table_init(struct cli_table *table, const char *const *headings) {
        scols_init_debug(0);
        table->scols = scols_new_table();
        if (!table->scols)
                out_of_memory();
        scols_table_enable_colors(table->scols, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
        for (; headings[table->columns]; table->columns++) {
                struct libscols_column *column =
                        scols_table_new_column(table->scols, headings[table->columns], 0, SCOLS_FL_WRAP);

                if (!column)
                        out_of_memory();
                scols_column_set_safechars(column, "\n");
                scols_column_set_wrapfunc(column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, nullptr);
        }
}

static struct libscols_line *new_line(struct cli_table *table) {
        struct libscols_line *line = scols_table_new_line(table->scols, nullptr);

        if (!line)
                out_of_memory();
        return line;
}

void cli_table_row(struct cli_table *table, const char *const *cells, const char *colour) {
        struct libscols_line *line = new_line(table);

        for (size_t i = 0; i < table->columns; i++)
                if (scols_line_set_data(line, i, cells[i]) != 0)
                        out_of_memory();
        if (colour)
                (void) scols_cell_set_color(scols_line_get_cell(line, 0), colour);
}

void cli_table_heading(struct cli_table *table, const char *text) {
        struct libscols_line *line = new_line(table);

        if (scols_line_set_data(line, table->columns > 1 ? 1 : 0, text) != 0)
                out_of_memory();
        (void) scols_line_set_color(line, "bold");
}

void cli_table_print(struct cli_table *table) {
        (void) scols_print_table(table->scols);
}
