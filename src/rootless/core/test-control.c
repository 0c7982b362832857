/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "rootless/core/control.h"

static void a_message_is_its_verb_and_its_fields([[maybe_unused]] void **state) {
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;
        nd_autofree const char **arguments = nullptr;

        rootless_control_begin(&text, "start");
        rootless_control_add(&text, "arg", "sh");
        rootless_control_add(&text, "env", "A=B=C");
        rootless_control_add(&text, "arg", "");
        expect_ok(rootless_control_parse(text.bytes, text.length, &message));
        assert_string_equal(message.verb, "start");
        assert_string_equal(rootless_control_get(&message, "env"), "A=B=C");
        assert_null(rootless_control_get(&message, "leaf"));
        arguments = rootless_control_get_all(&message, "arg");
        assert_string_equal(arguments[0], "sh");
        assert_string_equal(arguments[1], "");
        assert_null(arguments[2]);
}

static void invalid_messages_are_rejected([[maybe_unused]] void **state) {
        static const struct {
                const char *bytes;
                size_t length;
        } cases[] = {{"", 0}, {"nodens/1 a", 10}, {"nodens/2 a\0", 11}, {"nodens/1 \0", 10}, {"nodens/1 a\0word\0", 16}};

        for (size_t i = 0; i < nd_count_of(cases); i++) {
                nd_cleanup(rootless_control_done) struct rootless_control message = {};

                expect_error(rootless_control_parse(cases[i].bytes, cases[i].length, &message), ND_INVALID, "");
        }
}

static void an_error_keeps_its_code_and_text_across_the_socket([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_EXHAUSTED, ENOSPC, "make room");
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_control_add_error(&text, error);
        expect_ok(rootless_control_parse(text.bytes, text.length, &message));
        expect_error_text(rootless_control_error(&message), "make room: No space left on device");
}

static void descriptors_are_passed_and_closed_with_the_message([[maybe_unused]] void **state) {
        struct rootless_control message = {};
        nd_autotext struct nd_text text = CONTROL_TEXT;
        int pair[2], sent[2] = {0, 1}, got;
        struct stat a, b;

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        rootless_control_begin(&text, "start");
        expect_ok(rootless_control_send(pair[0], &text, sent, 2));
        expect_ok(rootless_control_receive(pair[1], 60 * ND_SECOND_US, &message));
        assert_int_equal(message.descriptor_count, 2);
        assert_int_equal(fstat(0, &a), 0);
        assert_int_equal(fstat(message.descriptors[0], &b), 0);
        assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
        got = message.descriptors[0];
        rootless_control_done(&message);
        assert_int_equal(fstat(got, &b), -1);
        close(pair[0]);
        expect_error(rootless_control_receive(pair[1], 60 * ND_SECOND_US, &message), ND_CANCELLED, "closed");
        close(pair[1]);
}

static void receiving_ends_at_the_deadline([[maybe_unused]] void **state) {
        struct rootless_control message = {};
        uint64_t before = nd_clock_us();
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        expect_error(rootless_control_receive(pair[1], 20 * ND_MS_US, &message), ND_DEADLINE, "20 ms");
        assert_in_range(nd_clock_us() - before, 19 * ND_MS_US, 60 * ND_SECOND_US);
        close(pair[0]);
        close(pair[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_message_is_its_verb_and_its_fields),
                cmocka_unit_test(invalid_messages_are_rejected),
                cmocka_unit_test(an_error_keeps_its_code_and_text_across_the_socket),
                cmocka_unit_test(descriptors_are_passed_and_closed_with_the_message),
                cmocka_unit_test(receiving_ends_at_the_deadline),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
