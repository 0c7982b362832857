/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <locale.h>

#include "cli/output/table.h"

static const struct cli_column columns[] = {
        {"POD", .kind = COLUMN_SHORTEN, .least = 8},
        {"STATE", .kind = COLUMN_WHOLE},
        {"SIZE", .kind = COLUMN_NUMBER},
        {"SANDBOX", .kind = COLUMN_WHOLE, .drop = 1},
        {"NOTE", .kind = COLUMN_WRAP, .least = 6},
        {},
};

static int use_utf8([[maybe_unused]] void **state) {
        assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
        return 0;
}

static char *text_at(size_t width) {
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        table.width = width;
        cli_table_row(&table, (const char *[]) {"frontend-7d9f8b-x2k9p", "ready", "5 B", "0123456789ab", "all is well"},
                      nullptr);
        cli_table_row(&table, (const char *[]) {"db", "ready", "12.5 MB", "ba9876543210", nullptr}, nullptr);
        return cli_table_text(&table);
}

static void a_table_without_a_terminal_is_complete([[maybe_unused]] void **state) {
        expect_text(text_at(0), "POD                   STATE    SIZE SANDBOX      NOTE\n"
                                "frontend-7d9f8b-x2k9p ready     5 B 0123456789ab all is well\n"
                                "db                    ready 12.5 MB ba9876543210\n");
}

static void the_widest_column_gives_way_first([[maybe_unused]] void **state) {
        expect_text(text_at(56), "POD               STATE    SIZE SANDBOX      NOTE\n"
                                 "frontend…8b-x2k9p ready     5 B 0123456789ab all is well\n"
                                 "db                ready 12.5 MB ba9876543210\n");
}

static void names_and_sentences_give_way_before_columns([[maybe_unused]] void **state) {
        expect_text(text_at(44), "POD      STATE    SIZE SANDBOX      NOTE\n"
                                 "fron…k9p ready     5 B 0123456789ab all is\n"
                                 "                                    well\n"
                                 "db       ready 12.5 MB ba9876543210\n");
}

static void columns_are_left_out_before_an_id_is_cut([[maybe_unused]] void **state) {
        expect_text(text_at(33), "POD       STATE    SIZE NOTE\n"
                                 "fron…2k9p ready     5 B all is\n"
                                 "                        well\n"
                                 "db        ready 12.5 MB\n");
}

static void a_cell_cannot_become_a_row([[maybe_unused]] void **state) {
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        cli_table_row(&table, (const char *[]) {"web\nroot", "\033[2J", "1 B", "x", "y"}, nullptr);
        expect_text(cli_table_text(&table), "POD      STATE SIZE SANDBOX NOTE\n"
                                            "web?root ?[2J   1 B x       y\n");
}

static void wide_names_are_aligned([[maybe_unused]] void **state) {
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        cli_table_row(&table, (const char *[]) {"\xe8\x8a\x82\xe7\x82\xb9", "a", "1 B", "x", "y"}, nullptr);
        cli_table_row(&table, (const char *[]) {"cafe\xcc\x81", "b", "2 B", "x", "y"}, nullptr);
        expect_text(cli_table_text(&table), "POD  STATE SIZE SANDBOX NOTE\n"
                                            "\xe8\x8a\x82\xe7\x82\xb9 a      1 B x       y\n"
                                            "cafe\xcc\x81 b      2 B x       y\n");
}

static void a_table_without_rows_is_empty([[maybe_unused]] void **state) {
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init_columns(&table, columns);
        expect_text(cli_table_text(&table), "");
}

static void the_last_column_of_a_simple_table_is_wrapped([[maybe_unused]] void **state) {
        static const char *const headings[] = {"CHECK", "FOUND", nullptr};
        nd_cleanup(cli_table_done) struct cli_table table = {};

        cli_table_init(&table, headings);
        table.width = 34;
        cli_table_heading(&table, "Kernel");
        cli_table_row(&table, (const char *[]) {"limits", "less than is needed\n-> raise the limit"}, nullptr);
        cli_table_row(&table, (const char *[]) {"cgroups", "v2 with cpu, memory and pids"}, nullptr);
        expect_text(cli_table_text(&table), "CHECK   FOUND\n"
                                            "        Kernel\n"
                                            "limits  less than is needed\n"
                                            "        -> raise the limit\n"
                                            "cgroups v2 with cpu, memory and\n"
                                            "        pids\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(a_table_without_a_terminal_is_complete, use_utf8),
                cmocka_unit_test_setup(the_widest_column_gives_way_first, use_utf8),
                cmocka_unit_test_setup(names_and_sentences_give_way_before_columns, use_utf8),
                cmocka_unit_test_setup(columns_are_left_out_before_an_id_is_cut, use_utf8),
                cmocka_unit_test_setup(a_cell_cannot_become_a_row, use_utf8),
                cmocka_unit_test_setup(wide_names_are_aligned, use_utf8),
                cmocka_unit_test_setup(a_table_without_rows_is_empty, use_utf8),
                cmocka_unit_test_setup(the_last_column_of_a_simple_table_is_wrapped, use_utf8),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
