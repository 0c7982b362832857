/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <stdio.h>

#include "cli/core/log-file.h"

static bool take(const char *bytes, size_t length, void *userdata) {
        struct nd_text *text = userdata;

        nd_text_append(text, bytes, length);
        nd_text_add(text, "|");
        return text->length < text->ceiling;
}

static void append(const char *path, const char *text) {
        FILE *file = fopen(path, "ae");

        assert_non_null(file);
        fputs(text, file);
        (void) fclose(file);
}

static void lines_are_returned_when_they_are_complete([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", directory);
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;
        nd_autotext struct nd_text got = ND_TEXT(1 << 20);

        scratch_text(directory, "0.log", "one\ntwo\nthr");
        expect_ok(cli_log_file_open(path, &file));
        expect_ok(cli_log_file_read(&file, take, &got));
        assert_string_equal(nd_text_get(&got), "one|two|");
        append(path, "ee\n");
        expect_ok(cli_log_file_follow(&file, take, &got));
        assert_string_equal(nd_text_get(&got), "one|two|three|");
        append(path, "rest");
        expect_ok(cli_log_file_follow(&file, take, &got));
        cli_log_file_finish(&file, take, &got);
        assert_string_equal(nd_text_get(&got), "one|two|three|rest|");
}

static void a_rotation_loses_and_repeats_nothing([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", directory), *old = nd_format("%s/0.log.1", directory);
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;
        nd_autotext struct nd_text got = ND_TEXT(1 << 20);

        scratch_text(directory, "0.log", "one\n");
        expect_ok(cli_log_file_open(path, &file));
        expect_ok(cli_log_file_follow(&file, take, &got));
        assert_int_equal(rename(path, old), 0);
        append(old, "two\n"); /* the monitor has not reopened the log yet */
        expect_ok(cli_log_file_follow(&file, take, &got));
        append(old, "three\n");
        append(path, "four\n"); /* now it has */
        expect_ok(cli_log_file_follow(&file, take, &got));
        append(path, "five\n");
        expect_ok(cli_log_file_follow(&file, take, &got));
        assert_string_equal(nd_text_get(&got), "one|two|three|four|five|");
}

static void a_truncated_log_is_read_from_the_beginning([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", directory);
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;
        nd_autotext struct nd_text got = ND_TEXT(1 << 20);

        scratch_text(directory, "0.log", "a long line\n");
        expect_ok(cli_log_file_open(path, &file));
        expect_ok(cli_log_file_follow(&file, take, &got));
        assert_int_equal(truncate(path, 0), 0);
        append(path, "new\n");
        expect_ok(cli_log_file_follow(&file, take, &got));
        assert_string_equal(nd_text_get(&got), "a long line|new|");
}

static void a_line_without_an_end_is_returned_in_pieces([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", directory), *bytes = nd_malloc(LOG_FILE_LINE + 1);
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;
        nd_autotext struct nd_text got = ND_TEXT(1 << 20);

        memset(bytes, 'x', LOG_FILE_LINE + 1);
        scratch_write(directory, "0.log", bytes, LOG_FILE_LINE + 1);
        expect_ok(cli_log_file_open(path, &file));
        expect_ok(cli_log_file_read(&file, take, &got));
        cli_log_file_finish(&file, take, &got);
        assert_int_equal(got.length, LOG_FILE_LINE + 3);
        assert_int_equal(got.bytes[LOG_FILE_LINE], '|');
}

static void only_regular_files_are_accepted([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *link = nd_format("%s/link", directory);
        struct cli_log_file file;

        assert_int_equal(symlink("/etc/hostname", link), 0);
        expect_error(cli_log_file_open(link, &file), ND_INTERNAL, "open log");
        expect_error(cli_log_file_open(directory, &file), ND_INVALID, "is not a regular file");
}

static void reading_stops_when_a_line_is_refused([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", directory);
        nd_cleanup(cli_log_file_done) struct cli_log_file file = LOG_FILE_NONE;
        nd_autotext struct nd_text got = ND_TEXT(8);

        scratch_text(directory, "0.log", "one\ntwo\nthree\n");
        expect_ok(cli_log_file_open(path, &file));
        expect_ok(cli_log_file_read(&file, take, &got));
        assert_string_equal(nd_text_get(&got), "one|two|");
        assert_false(got.overflow);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_returned_when_they_are_complete),
                cmocka_unit_test(a_rotation_loses_and_repeats_nothing),
                cmocka_unit_test(a_truncated_log_is_read_from_the_beginning),
                cmocka_unit_test(a_line_without_an_end_is_returned_in_pieces),
                cmocka_unit_test(only_regular_files_are_accepted),
                cmocka_unit_test(reading_stops_when_a_line_is_refused),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
