/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include "net/monitor-wire.h"

static void put(char file[static ND_MONITOR_RECORD], const struct nd_monitor_record *record) {
        char slot[ND_MONITOR_SLOT];
        unsigned number = nd_monitor_record_slot(record, slot);

        assert_true(number < 3);
        memcpy(file + (size_t) number * ND_MONITOR_SLOT, slot, sizeof slot);
}

static void a_record_gives_the_last_phase_that_was_written([[maybe_unused]] void **state) {
        char file[ND_MONITOR_RECORD];
        struct nd_monitor_record record;

        memset(file, '\n', sizeof file);
        assert_false(nd_monitor_record_read(file, sizeof file, &record));
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATING});
        assert_true(nd_monitor_record_read(file, sizeof file, &record));
        assert_int_equal(record.phase, ND_MONITOR_CREATING);

        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATED, .pid = 4194304, .birth = UINT64_MAX});
        assert_true(nd_monitor_record_read(file, sizeof file, &record));
        assert_int_equal(record.phase, ND_MONITOR_CREATED);
        assert_int_equal(record.pid, 4194304);
        assert_true(record.birth == UINT64_MAX);

        put(file,
            &(struct nd_monitor_record) {
                    .phase = ND_MONITOR_EXITED, .code = 137, .at = UINT64_MAX, .oom_kills = INT64_MAX, .lost = UINT64_MAX});
        assert_true(nd_monitor_record_read(file, sizeof file, &record));
        assert_int_equal(record.phase, ND_MONITOR_EXITED);
        assert_int_equal(record.pid, 4194304);
        assert_int_equal(record.code, 137);
        assert_true(record.at == UINT64_MAX && record.oom_kills == INT64_MAX && record.lost == UINT64_MAX);
}

static void an_unknown_count_is_not_zero([[maybe_unused]] void **state) {
        char file[ND_MONITOR_RECORD];
        struct nd_monitor_record record;

        memset(file, '\n', sizeof file);
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATING});
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATED, .pid = 7});
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_EXITED, .oom_kills = -1});
        assert_true(nd_monitor_record_read(file, sizeof file, &record));
        assert_int_equal(record.oom_kills, -1);
}

/* A reader may read while a slot is being written. */
static void an_incomplete_slot_counts_as_not_written([[maybe_unused]] void **state) {
        char file[ND_MONITOR_RECORD], slot[ND_MONITOR_SLOT];
        struct nd_monitor_record record;
        unsigned number;

        memset(file, '\n', sizeof file);
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATING});
        put(file, &(struct nd_monitor_record) {.phase = ND_MONITOR_CREATED, .pid = 7, .birth = 8});
        number = nd_monitor_record_slot(&(struct nd_monitor_record) {.phase = ND_MONITOR_EXITED, .code = 137, .at = 123456},
                                        slot);
        for (size_t length = 0; length <= strcspn(slot, "\n"); length++) {
                memcpy(file + (size_t) number * ND_MONITOR_SLOT, slot, length);
                assert_true(nd_monitor_record_read(file, sizeof file, &record));
                assert_int_equal(record.phase, length == strcspn(slot, "\n") ? ND_MONITOR_EXITED : ND_MONITOR_CREATED);
        }
}

static void put_words(char *slot, const char *words) {
        while (*words)
                *slot++ = *words++;
}

static void fields_that_a_later_version_adds_are_ignored([[maybe_unused]] void **state) {
        char file[ND_MONITOR_RECORD];
        struct nd_monitor_record record;

        memset(file, '\n', sizeof file);
        put_words(file, "nodens-mon 2 more words .");
        put_words(file + ND_MONITOR_SLOT, "created 5 6 and seven .");
        assert_true(nd_monitor_record_read(file, sizeof file, &record));
        assert_int_equal(record.pid, 5);
}

static void a_message_is_read_as_it_was_written([[maybe_unused]] void **state) {
        static const struct nd_monitor_message cases[] = {
                {.letter = ND_MONITOR_REOPEN},
                {.letter = ND_MONITOR_RESIZE, .rows = 24, .columns = 65535},
                {.letter = ND_MONITOR_REOPENED, .error_number = 28, .words = "no", .length = 2},
                {.letter = ND_MONITOR_IS_CREATED, .words = "warning", .length = 7},
                {.letter = ND_MONITOR_IS_FAILED, .error_number = 2, .words = "", .length = 0},
                {.letter = ND_MONITOR_IS_EXITED},
                {.letter = ND_MONITOR_ATTACH, .streams = ND_MONITOR_STDIN | ND_MONITOR_STDERR},
                {.letter = ND_MONITOR_ATTACHED, .error_number = 16, .words = "many", .length = 4},
                {.letter = ND_MONITOR_DROPPED},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                char bytes[ND_MONITOR_MESSAGE];
                size_t length = nd_monitor_message_write(cases + i, bytes);
                struct nd_monitor_message message;

                assert_true(nd_monitor_message_read(bytes, length, &message));
                assert_int_equal(message.letter, cases[i].letter);
                assert_int_equal(message.rows, cases[i].rows);
                assert_int_equal(message.streams, cases[i].streams);
                assert_int_equal(message.columns, cases[i].columns);
                assert_int_equal(message.error_number, cases[i].error_number);
                assert_int_equal(message.length, cases[i].length);
                if (message.length > 0)
                        assert_memory_equal(message.words, cases[i].words, message.length);
        }
}

static void long_texts_are_truncated_and_unknown_letters_ignored([[maybe_unused]] void **state) {
        nd_autofree char *words = nd_malloc(100000);
        char bytes[ND_MONITOR_MESSAGE];
        struct nd_monitor_message message = {.letter = ND_MONITOR_IS_FAILED, .words = words, .length = 100000};
        size_t length;

        memset(words, 'x', 100000);
        length = nd_monitor_message_write(&message, bytes);
        assert_true(nd_monitor_message_read(bytes, length, &message));
        assert_int_equal(message.length, ND_MONITOR_TEXT);
        assert_false(nd_monitor_message_read("?", 1, &message));
        assert_false(nd_monitor_message_read("", 0, &message));
        assert_false(nd_monitor_message_read("l\1\2", 3, &message));
        assert_false(nd_monitor_message_read("W\1\2", 3, &message));
        assert_false(nd_monitor_message_read("A", 1, &message));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_gives_the_last_phase_that_was_written),
                cmocka_unit_test(an_unknown_count_is_not_zero),
                cmocka_unit_test(an_incomplete_slot_counts_as_not_written),
                cmocka_unit_test(fields_that_a_later_version_adds_are_ignored),
                cmocka_unit_test(a_message_is_read_as_it_was_written),
                cmocka_unit_test(long_texts_are_truncated_and_unknown_letters_ignored),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
