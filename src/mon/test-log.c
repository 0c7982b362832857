/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/text.h"
#include "mon/log.h"
#include "sys/calls.h"
#include "sys/file.h"

static struct nd_calls table;
static size_t room; /* bytes that the disk still has room for */

static ssize_t writev_to_a_full_disk(int fd, const struct iovec *vectors, int count) {
        size_t written = 0;

        for (int i = 0; i < count && room > 0; i++) {
                size_t n = vectors[i].iov_len < room ? vectors[i].iov_len : room;

                assert_int_equal(write(fd, vectors[i].iov_base, n), n);
                written += n;
                room -= n;
        }
        if (written > 0)
                return (ssize_t) written;
        errno = ENOSPC;
        return -1;
}

static void disk_has(size_t bytes) {
        table = nd_calls_real;
        table.writev = writev_to_a_full_disk;
        nd_sys = &table;
        room = bytes;
}

static int disk_is_real([[maybe_unused]] void **state) {
        nd_sys = &nd_calls_real;
        return 0;
}

static void log_close(struct mon_log *log) {
        nd_close_fd(&log->fd);
        nd_close_fd(&log->directory);
}

static void say(struct mon_log *log, const char *words) {
        static struct mon_line_buffer buffer;
        size_t length = strlen(words);

        memcpy(buffer.bytes + buffer.length, words, length);
        buffer.length += length;
        mon_log_write(log, "stdout", &buffer, false);
}

/* Returns the log without its timestamps. */
static char *contents(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *bytes = nullptr;
        struct nd_text text = ND_TEXT(1 << 20);
        size_t length;

        expect_ok(nd_file_read(AT_FDCWD, path, 1 << 20, &bytes, &length));
        for (const char *line = bytes; *line;) {
                size_t n = strcspn(line, "\n");

                assert_true(n > LINE_TIMESTAMP);
                nd_text_append(&text, line + LINE_TIMESTAMP + 1, n - LINE_TIMESTAMP);
                line += n + 1;
        }
        return text.bytes ? nd_text_steal(&text) : nd_strdup("");
}

static void lines_are_appended_to_an_existing_log([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;

        expect_ok(mon_log_open(d, "0.log", &log));
        say(&log, "one\n");
        log_close(&log);
        expect_ok(mon_log_open(d, "0.log", &log));
        say(&log, "two\nthr");
        say(&log, "ee\n");
        expect_text(contents(d, "0.log"), "stdout F one\nstdout F two\nstdout F three\n");
}

static void without_a_path_no_log_is_kept([[maybe_unused]] void **state) {
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;

        expect_ok(mon_log_open("/nowhere", "", &log));
        say(&log, "one\n");
        assert_int_equal(mon_log_reopen(&log), 0);
        assert_int_equal(log.lost, 0);
}

static void reopening_continues_in_a_new_file_and_never_truncates([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", d), *rotated = nd_format("%s/0.log.1", d);
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;

        expect_ok(mon_log_open(d, "0.log", &log));
        say(&log, "one\nhalf");
        assert_int_equal(rename(path, rotated), 0);
        say(&log, " a line\n");
        assert_int_equal(mon_log_reopen(&log), 0);
        say(&log, "three\n");
        assert_int_equal(mon_log_reopen(&log), 0); /* it was not renamed */
        say(&log, "four\n");
        expect_text(contents(d, "0.log.1"), "stdout F one\nstdout F half a line\n");
        expect_text(contents(d, "0.log"), "stdout F three\nstdout F four\n");
}

static void a_symbolic_link_in_place_of_the_log_is_not_followed([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", d), *rotated = nd_format("%s/0.log.1", d),
                         *victim = nd_format("%s/victim", d);
        nd_autofree char *link = nd_format("%s/link", d);
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;

        assert_int_equal(symlink(victim, path), 0);
        expect_error(mon_log_open(d, "0.log", &log), nd_error_code_of(ELOOP), "0.log");
        assert_int_equal(symlink(d, link), 0);
        expect_error(mon_log_open(d, "link/1.log", &log), nd_error_code_of(ELOOP), "1.log");
        expect_error(mon_log_open(d, "../1.log", &log), nd_error_code_of(EXDEV), "1.log");
        assert_int_equal(unlink(path), 0);

        expect_ok(mon_log_open(d, "0.log", &log));
        say(&log, "one\n");
        assert_int_equal(rename(path, rotated), 0);
        assert_int_equal(symlink(victim, path), 0);
        assert_int_equal(mon_log_reopen(&log), -ELOOP);
        say(&log, "two\n"); /* the old file is still written */
        expect_text(contents(d, "0.log.1"), "stdout F one\nstdout F two\n");
        assert_int_equal(access(victim, F_OK), -1);
}

static void a_fifo_in_place_of_the_log_is_rejected_at_once([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", d);
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;
        struct nd_error *error;

        assert_int_equal(mkfifo(path, 0600), 0);
        error = mon_log_open(d, "0.log", &log);
        assert_non_null(error);
        nd_error_free(error);
}

static void a_full_disk_loses_lines_and_the_log_counts_them([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(log_close) struct mon_log log = LOG_NONE;

        expect_ok(mon_log_open(d, "0.log", &log));
        disk_has(60); /* one line of 44 bytes, and a part of the next */
        say(&log, "one\ntwo\nthree\n");
        say(&log, "four\n");
        assert_int_equal(log.lost, sizeof "two\nthree\nfour\n" - 1);
        expect_text(contents(d, "0.log"), "stdout F one\n");
        room = 10000;
        say(&log, "five\n");
        say(&log, "six\n");
        expect_text(contents(d, "0.log"),
                    "stdout F one\n"
                    "stdout F nodens-mon: 3 lines (15 bytes) of output were lost here: No space left on device\n"
                    "stdout F five\nstdout F six\n");
}

static void a_log_on_a_full_disk_has_only_complete_lines([[maybe_unused]] void **state) {
        for (size_t bytes = 0; bytes < 400; bytes++) {
                scratch_directory d = scratch_make();
                nd_cleanup(log_close) struct mon_log log = LOG_NONE;
                nd_autofree char *text = nullptr;

                expect_ok(mon_log_open(d, "0.log", &log));
                disk_has(bytes);
                say(&log, "one\ntwo\nthree\n");
                say(&log, "four\n");
                nd_sys = &nd_calls_real;
                say(&log, "five\n");
                text = contents(d, "0.log"); /* checks each line */
                expect_contains(text, "stdout F five\n");
                assert_true((log.lost > 0) == (strstr(text, "were lost here") != nullptr));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lines_are_appended_to_an_existing_log),
                cmocka_unit_test(without_a_path_no_log_is_kept),
                cmocka_unit_test(reopening_continues_in_a_new_file_and_never_truncates),
                cmocka_unit_test(a_symbolic_link_in_place_of_the_log_is_not_followed),
                cmocka_unit_test(a_fifo_in_place_of_the_log_is_rejected_at_once),
                cmocka_unit_test_teardown(a_full_disk_loses_lines_and_the_log_counts_them, disk_is_real),
                cmocka_unit_test_teardown(a_log_on_a_full_disk_has_only_complete_lines, disk_is_real),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
