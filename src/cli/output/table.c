/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/table.h"

#include <libsmartcols/libsmartcols.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/output/terminal.h"
#include "cli/output/width.h"

enum {
        COLUMNS_MOST = 16,
        SENTENCE_LEAST = 24,
};

static void *require(void *made) {
        if (!made) {
                fputs("nodens: out of memory\n", stderr);
                abort();
        }
        return made;
}

/* ---- rows ---- */

void cli_table_done(struct cli_table *table) {
        nd_vector_each (row, &table->rows) {
                for (size_t i = 0; i < table->count; i++)
                        free(row->cells[i]);
                free(row->cells);
        }
        nd_vector_done(&table->rows);
        free(table->columns);
        table->columns = nullptr;
}

void cli_table_init_columns(struct cli_table *table, const struct cli_column *columns) {
        struct cli_terminal terminal;

        *table = (struct cli_table) {.width = cli_terminal_size(&terminal) ? terminal.columns : 0};
        while (columns[table->count].heading)
                table->count++;
        table->columns = nd_calloc(table->count, sizeof *columns);
        memcpy(table->columns, columns, table->count * sizeof *columns);
}

void cli_table_init(struct cli_table *table, const char *const *headings) {
        struct cli_column columns[COLUMNS_MOST] = {};

        for (size_t i = 0; headings[i] && i + 1 < COLUMNS_MOST; i++)
                columns[i] = headings[i + 1] ? (struct cli_column) {headings[i], .kind = COLUMN_WHOLE}
                                             : (struct cli_column) {headings[i], .kind = COLUMN_WRAP, .least = SENTENCE_LEAST};
        cli_table_init_columns(table, columns);
}

static struct cli_table_row *add_row(struct cli_table *table) {
        nd_vector_push(&table->rows, ((struct cli_table_row) {.cells = nd_calloc(table->count, sizeof(char *))}));
        return &table->rows.items[table->rows.count - 1];
}

void cli_table_row(struct cli_table *table, const char *const *cells, const char *colour) {
        struct cli_table_row *row = add_row(table);

        for (size_t i = 0; i < table->count; i++)
                row->cells[i] = cli_width_clean(cells[i] ?: "", table->columns[i].kind == COLUMN_WRAP);
        row->colour = colour;
}

void cli_table_heading(struct cli_table *table, const char *text) {
        struct cli_table_row *row = add_row(table);

        for (size_t i = 0; i < table->count; i++)
                row->cells[i] = cli_width_clean(i == (table->count > 1 ? 1 : 0) ? text : "", false);
        row->heading = true;
}

/* ---- fitting ---- */

/* A column of the output. */
struct slot {
        size_t width; /* so far */
        size_t least;
        bool hidden;
};

static bool may_shrink(const struct cli_column *column) {
        return column->kind == COLUMN_SHORTEN || column->kind == COLUMN_WRAP;
}

static void measure(const struct cli_table *table, struct slot *slots) {
        for (size_t i = 0; i < table->count; i++) {
                const struct cli_column *column = &table->columns[i];
                size_t heading = cli_width_of(column->heading), least = column->least > heading ? column->least : heading;

                slots[i].width = heading;
                nd_vector_each (row, &table->rows) {
                        size_t width = cli_width_of(row->cells[i]);

                        slots[i].width = width > slots[i].width ? width : slots[i].width;
                }
                slots[i].least = may_shrink(column) && least < slots[i].width ? least : slots[i].width;
        }
}

/* The table's width, with a blank between two columns. */
static size_t total(const struct cli_table *table, const struct slot *slots, bool least) {
        size_t sum = 0;

        for (size_t i = 0; i < table->count; i++)
                if (!slots[i].hidden)
                        sum += (sum > 0 ? 1 : 0) + (least ? slots[i].least : slots[i].width);
        return sum;
}

static void hide_columns(const struct cli_table *table, struct slot *slots) {
        while (total(table, slots, true) > table->width) {
                size_t found = table->count;

                for (size_t i = 0; i < table->count; i++)
                        if (!slots[i].hidden && table->columns[i].drop > 0 &&
                            (found == table->count || table->columns[i].drop > table->columns[found].drop))
                                found = i;
                if (found == table->count)
                        return;
                slots[found].hidden = true;
        }
}

/* Returns the widest column that can give way, the last of several, or nullptr. */
static struct slot *widest(const struct cli_table *table, struct slot *slots) {
        struct slot *found = nullptr;

        for (size_t i = 0; i < table->count; i++)
                if (!slots[i].hidden && slots[i].width > slots[i].least && (!found || slots[i].width >= found->width))
                        found = &slots[i];
        return found;
}

static void fit(const struct cli_table *table, struct slot *slots) {
        struct slot *slot;

        measure(table, slots);
        if (table->width == 0)
                return;
        hide_columns(table, slots);
        while (total(table, slots, false) > table->width && (slot = widest(table, slots)))
                slot->width--;
}

/* ---- output ---- */

static void scols_done(struct libscols_table **scols) {
        scols_unref_table(*scols);
}

static void add_columns(struct libscols_table *scols, const struct cli_table *table, const struct slot *slots) {
        for (size_t i = 0; i < table->count; i++) {
                enum cli_column_kind kind = table->columns[i].kind;
                int flags = kind == COLUMN_NUMBER ? SCOLS_FL_RIGHT : kind == COLUMN_WRAP ? SCOLS_FL_WRAP : 0;
                struct libscols_column *column;

                if (slots[i].hidden)
                        continue;
                column = require(scols_table_new_column(scols, table->columns[i].heading, 0, flags));
                if (kind == COLUMN_WRAP) {
                        scols_column_set_safechars(column, "\n");
                        scols_column_set_wrapfunc(column, scols_wrapnl_chunksize, scols_wrapnl_nextchunk, nullptr);
                }
        }
}

static char *cell_text(const struct cli_column *column, const struct slot *slot, const char *cell) {
        switch (column->kind) {
        case COLUMN_SHORTEN:
                return cli_width_shorten(cell, slot->width);
        case COLUMN_WRAP:
                return cli_width_wrap(cell, slot->width);
        default:
                return nd_strdup(cell);
        }
}

static void add_line(struct libscols_table *scols, const struct cli_table *table, const struct slot *slots,
                     const struct cli_table_row *row) {
        struct libscols_line *line = require(scols_table_new_line(scols, nullptr));

        for (size_t i = 0, n = 0; i < table->count; i++) {
                char *text = slots[i].hidden ? nullptr : cell_text(&table->columns[i], &slots[i], row->cells[i]);

                if (text && scols_line_refer_data(line, n++, text) != 0)
                        free(text);
        }
        if (row->heading)
                (void) scols_line_set_color(line, "bold");
        if (row->colour && !slots[0].hidden)
                (void) scols_cell_set_color(scols_line_get_cell(line, 0), row->colour);
}

/* Returns the lines without blanks at their ends, each with a newline. */
static char *finish(const char *text) {
        struct nd_text out = ND_TEXT(strlen(text) + 1);

        while (*text) {
                size_t length = strcspn(text, "\n"), shown = length;

                while (shown > 0 && text[shown - 1] == ' ')
                        shown--;
                nd_text_append(&out, text, shown);
                nd_text_add(&out, "\n");
                text += length + (text[length] == '\n');
        }
        return nd_text_steal(&out);
}

char *cli_table_text(const struct cli_table *table) {
        nd_autofree struct slot *slots = nd_calloc(table->count, sizeof *slots);
        nd_cleanup(scols_done) struct libscols_table *scols = nullptr;
        nd_autofree char *text = nullptr;

        if (table->rows.count == 0)
                return nd_strdup("");
        fit(table, slots);
        scols_init_debug(0);
        scols = require(scols_new_table());
        (void) scols_table_set_termforce(scols, SCOLS_TERMFORCE_NEVER); /* the cells fit already */
        (void) scols_table_enable_colors(scols, cli_terminal_has_colour());
        add_columns(scols, table, slots);
        nd_vector_each (row, &table->rows)
                add_line(scols, table, slots, row);
        (void) scols_print_table_to_string(scols, &text);
        return finish(require(text));
}

void cli_table_print(const struct cli_table *table) {
        nd_autofree char *text = cli_table_text(table);

        fputs(text, stdout);
}

void cli_table_print_or_note(const struct cli_table *table, const char *note) {
        if (table->rows.count > 0)
                cli_table_print(table);
        else
                fprintf(stderr, "%s\n", note);
}
