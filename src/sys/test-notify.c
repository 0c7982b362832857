/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/notify.h"

#include <unit/expect.h>

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/text.h"

static int manager = -1; /* stands for systemd's socket */

static int start([[maybe_unused]] void **state) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        (void) snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "nodens-test-notify-%d", (int) getpid());
        manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (manager < 0 || bind(manager, (struct sockaddr *) &address,
                                (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1))) < 0)
                return -1;
        address.sun_path[0] = '@';
        return setenv("NOTIFY_SOCKET", address.sun_path, 1);
}

static int finish([[maybe_unused]] void **state) {
        (void) close(manager);
        return unsetenv("NOTIFY_SOCKET");
}

static void expect_message(const char *message) {
        char received[8192];
        ssize_t n = recv(manager, received, sizeof received - 1, 0);

        assert_true(n > 0);
        received[n] = '\0';
        assert_string_equal(received, message);
}

static void each_state_has_a_text([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_error_new(ND_INVALID, 0, "unknown key 'x'");

        nd_notify_status("running the self-test");
        expect_message("STATUS=running the self-test");
        nd_notify_ready("ready: 1 pod");
        expect_message("READY=1\nSTATUS=ready: 1 pod");
        nd_notify_failure(error);
        expect_message("STATUS=cannot start: unknown key 'x'");
        nd_notify_stopping();
        expect_message("STOPPING=1\nSTATUS=stopping");
        assert_true(nd_notify_send("MAINPID=1\nREADY=1", "x") > 0);
        expect_message("MAINPID=1\nREADY=1\nSTATUS=x");
}

static void a_text_cannot_add_an_assignment([[maybe_unused]] void **state) {
        nd_notify_status("a\nMAINPID=1\x1b\xff");
        expect_message("STATUS=a MAINPID=1 \xef\xbf\xbd");
}

static void a_long_text_is_cut_off([[maybe_unused]] void **state) {
        nd_autofree char *text = nd_malloc(10000), *expected = nullptr;

        memset(text, 'x', 9999);
        text[9999] = '\0';
        nd_notify_status(text);
        expected = nd_format("STATUS=%.*s", ND_NOTIFY_BYTES, text);
        expect_message(expected);
}

static void a_status_does_not_wait_for_the_manager([[maybe_unused]] void **state) {
        enum { MESSAGES = 20000, PATIENCE_S = 60 };

        (void) alarm(PATIENCE_S);
        for (unsigned i = 0; i < MESSAGES; i++)
                nd_notify_status("much"); /* nothing reads */
        (void) alarm(0);
        expect_message("STATUS=much");
}

static void without_a_service_manager_nothing_is_sent([[maybe_unused]] void **state) {
        (void) unsetenv("NOTIFY_SOCKET");
        assert_int_equal(nd_notify_send("READY=1", "x"), 0);
        nd_notify_status("x");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(each_state_has_a_text, start, finish),
                cmocka_unit_test_setup_teardown(a_text_cannot_add_an_assignment, start, finish),
                cmocka_unit_test_setup_teardown(a_long_text_is_cut_off, start, finish),
                cmocka_unit_test_setup_teardown(a_status_does_not_wait_for_the_manager, start, finish),
                cmocka_unit_test_setup_teardown(without_a_service_manager_nothing_is_sent, start, finish),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
