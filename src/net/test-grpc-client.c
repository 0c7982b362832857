/* SPDX-License-Identifier: Apache-2.0 */
/* Our client and our server on one loop; tests/component/grpc has foreign clients. */
#include "net/grpc-client.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unit/expect.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "net/grpc-server.h"
#include "net/unix.h"

struct scene {
        sd_event *loop;
        struct nd_grpc_server *server;
        struct nd_grpc_client *client;
        struct nd_grpc_call *held; /* of /t/Hold */
        unsigned held_cancelled;
        unsigned messages, ends, drained;
        size_t bytes;
        enum nd_error_code code;
        char text[256];
};

static void handle_echo(struct nd_grpc_call *call, const char *request, size_t length, [[maybe_unused]] void *userdata) {
        nd_grpc_call_send(call, request, length);
        nd_grpc_call_finish(call, nullptr);
}

static void handle_count(struct nd_grpc_call *call, const char *request, [[maybe_unused]] size_t length,
                         [[maybe_unused]] void *userdata) {
        for (int i = 0; i < request[0]; i++)
                nd_grpc_call_send(call, request, (size_t) i);
        nd_grpc_call_finish(call, nd_error_new(ND_ABORTED, 0, "that was all"));
}

static void on_held_cancelled(void *userdata) {
        struct scene *scene = userdata;

        scene->held_cancelled++;
}

static void handle_hold(struct nd_grpc_call *call, [[maybe_unused]] const char *request, [[maybe_unused]] size_t length,
                        void *userdata) {
        struct scene *scene = userdata;

        scene->held = call;
        nd_grpc_call_on_cancel(call, on_held_cancelled, scene);
}

/* As most handlers do: finish a cancelled call immediately. */
static void on_yielded(void *userdata) {
        struct scene *scene = userdata;

        scene->held_cancelled++;
        nd_grpc_call_finish(nd_take_ptr(scene->held), nullptr);
}

static void handle_yield(struct nd_grpc_call *call, [[maybe_unused]] const char *request, [[maybe_unused]] size_t length,
                         void *userdata) {
        struct scene *scene = userdata;

        scene->held = call;
        nd_grpc_call_on_cancel(call, on_yielded, scene);
}

/* Sends one message each time the queue has drained, and ends after three. */
static void on_drained(void *userdata) {
        struct scene *scene = userdata;

        if (++scene->drained < 3)
                nd_grpc_call_send(scene->held, "more", 4);
        else
                nd_grpc_call_finish(nd_take_ptr(scene->held), nullptr);
}

static void handle_drip(struct nd_grpc_call *call, const char *request, size_t length, void *userdata) {
        struct scene *scene = userdata;

        scene->held = call;
        nd_grpc_call_on_drained(call, on_drained, scene);
        nd_grpc_call_begin(call);
        nd_grpc_call_send(call, request, length);
}

static const struct nd_grpc_method methods[] = {{"/t/Echo", handle_echo}, {"/t/Count", handle_count},
                                                {"/t/Hold", handle_hold}, {"/t/Yield", handle_yield},
                                                {"/t/Drip", handle_drip}, {}};
static const struct nd_grpc_method *const tables[] = {methods, nullptr};

static int listen_somewhere(char *ret_path, size_t size) {
        struct sockaddr_un address;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void) snprintf(ret_path, size, "/tmp/test-grpc-%d.sock", (int) getpid());
        (void) unlink(ret_path);
        expect_ok(nd_unix_address(ret_path, &address));
        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *) &address, sizeof address), 0);
        assert_int_equal(listen(fd, 16), 0);
        return fd;
}

static int set_up(void **state) {
        struct scene *scene = nd_new(struct scene);
        const struct nd_grpc_server_settings settings = {.tables = tables, .userdata = scene};
        char path[64];
        int fd = listen_somewhere(path, sizeof path);

        assert_true(sd_event_new(&scene->loop) >= 0);
        expect_ok(nd_grpc_server_new(scene->loop, &settings, &scene->server));
        expect_ok(nd_grpc_server_listen(scene->server, fd));
        expect_ok(nd_grpc_client_connect(scene->loop, path, &scene->client));
        (void) unlink(path);
        *state = scene;
        return 0;
}

static int tear_down(void **state) {
        struct scene *scene = *state;

        nd_grpc_client_free(scene->client);
        nd_grpc_server_free(scene->server);
        if (scene->held)
                nd_grpc_call_finish(scene->held, nullptr);
        sd_event_unref(scene->loop);
        free(scene);
        return 0;
}

static void on_message([[maybe_unused]] const char *bytes, size_t length, void *userdata) {
        struct scene *scene = userdata;

        scene->messages++;
        scene->bytes += length;
}

static void on_end(struct nd_error *error, void *userdata) {
        struct scene *scene = userdata;

        scene->ends++;
        scene->code = nd_error_code(error);
        (void) snprintf(scene->text, sizeof scene->text, "%s", nd_error_text(error));
        nd_error_free(error);
}

static int32_t start(struct scene *scene, const char *path, const char *bytes, size_t length, uint64_t timeout_us) {
        static const struct nd_grpc_answer answer = {.message = on_message, .end = on_end};
        int32_t call = -1;

        expect_ok(nd_grpc_client_call(scene->client, path, bytes, length, timeout_us, &answer, scene, &call));
        return call;
}

/* Runs the loop until a condition holds, a minute at most. */
#define run_until(scene, condition)                                                                                           \
        do {                                                                                                                  \
                for (uint64_t end = nd_clock_us() + 60 * ND_SECOND_US; !(condition) && nd_clock_us() < end;)                  \
                        assert_true(sd_event_run((scene)->loop, 10 * ND_MS_US) >= 0);                                         \
                assert_true(condition);                                                                                       \
        } while (0)

static void an_echo_comes_back(void **state) {
        struct scene *scene = *state;

        (void) start(scene, "/t/Echo", "hello", 5, 0);
        run_until(scene, scene->ends == 1);
        assert_int_equal(scene->messages, 1);
        assert_int_equal(scene->bytes, 5);
        assert_int_equal(scene->code, ND_OK);
}

static void a_stream_ends_with_its_status(void **state) {
        struct scene *scene = *state;
        static const char request[200] = {100};

        (void) start(scene, "/t/Count", request, sizeof request, 0);
        run_until(scene, scene->ends == 1);
        assert_int_equal(scene->messages, 100);
        assert_int_equal(scene->bytes, 99 * 100 / 2);
        assert_int_equal(scene->code, ND_ABORTED);
        assert_string_equal(scene->text, "that was all");
}

static void a_stream_is_notified_when_its_queue_has_drained(void **state) {
        struct scene *scene = *state;

        (void) start(scene, "/t/Drip", "drop", 4, 0);
        run_until(scene, scene->ends == 1);
        assert_int_equal(scene->messages, 3);
        assert_int_equal(scene->bytes, 12);
        assert_int_equal(scene->drained, 3);
        assert_int_equal(scene->code, ND_OK);
}

static void an_oversized_answer_ends_the_call_and_notifies_the_handler(void **state) {
        nd_autofree char *large = nd_calloc(ND_GRPC_MESSAGE + 1, 1);
        struct scene *scene = *state;

        (void) start(scene, "/t/Hold", "", 0, 0);
        run_until(scene, scene->held);
        nd_grpc_call_send(scene->held, large, ND_GRPC_MESSAGE + 1);
        run_until(scene, scene->ends == 1 && scene->held_cancelled == 1);
        assert_int_equal(scene->code, ND_EXHAUSTED);
}

static void a_deadline_ends_the_call_on_both_sides(void **state) {
        struct scene *scene = *state;

        /* On a slow host the deadline may pass before the request is sent: then retry with more
         * time. */
        for (uint64_t timeout_us = 50 * ND_MS_US; !scene->held; timeout_us *= 2) {
                unsigned ends = scene->ends;

                (void) start(scene, "/t/Hold", "", 0, timeout_us);
                run_until(scene, scene->ends > ends);
                assert_int_equal(scene->code, ND_DEADLINE);
        }
        run_until(scene, scene->held_cancelled == 1);
}

/* Either side's timer may be first. */
static void deadlines_of_calls_that_their_handlers_end_leave_no_timer(void **state) {
        struct scene *scene = *state;

        for (unsigned i = 1; i <= 40; i++) {
                (void) start(scene, "/t/Yield", "", 0, (uint64_t) (i % 4 + 1) * ND_MS_US / 2);
                run_until(scene, scene->ends == i && nd_grpc_server_calls(scene->server) == 0);
                assert_int_equal(scene->code, ND_DEADLINE);
                assert_null(scene->held);
        }
}

static void a_handler_that_sends_too_much_still_has_its_call(void **state) {
        nd_autofree char *large = nd_calloc(ND_GRPC_MESSAGE + 1, 1);
        struct scene *scene = *state;

        (void) start(scene, "/t/Yield", "", 0, 0);
        run_until(scene, scene->held);
        nd_grpc_call_send(scene->held, large, ND_GRPC_MESSAGE + 1);
        assert_non_null(scene->held);
        nd_grpc_call_send(scene->held, "more", 4);
        run_until(scene, scene->ends == 1 && nd_grpc_server_calls(scene->server) == 0);
        assert_int_equal(scene->code, ND_EXHAUSTED);
        assert_int_equal(scene->held_cancelled, 1);
}

static void cancelling_notifies_the_handler_once(void **state) {
        struct scene *scene = *state;
        int32_t call = start(scene, "/t/Hold", "", 0, 0);

        run_until(scene, scene->held);
        nd_grpc_client_cancel(scene->client, call);
        run_until(scene, scene->held_cancelled == 1);
        assert_int_equal(scene->ends, 1);
        assert_int_equal(scene->code, ND_CANCELLED);
        nd_grpc_call_send(scene->held, "late", 4);
        nd_grpc_call_finish(scene->held, nullptr);
        scene->held = nullptr;
        run_until(scene, nd_grpc_server_calls(scene->server) == 0);
}

static void a_server_that_goes_away_ends_every_call(void **state) {
        struct scene *scene = *state;

        (void) start(scene, "/t/Hold", "", 0, 0);
        run_until(scene, scene->held);
        nd_grpc_server_free(scene->server);
        scene->server = nullptr;
        run_until(scene, scene->ends == 1);
        assert_int_equal(scene->code, ND_UNAVAILABLE);
        assert_int_equal(scene->held_cancelled, 1);
}

static void an_unknown_method_is_an_error_that_names_it(void **state) {
        struct scene *scene = *state;

        (void) start(scene, "/t/Nothing", "", 0, 0);
        run_until(scene, scene->ends == 1);
        assert_int_equal(scene->code, ND_UNIMPLEMENTED);
        assert_string_equal(scene->text, "unknown method /t/Nothing");
}

static void a_failed_connect_is_an_error_that_names_the_socket([[maybe_unused]] void **state) {
        char *answer;
        size_t length;

        expect_error(nd_grpc_call_once("/tmp/nobody-here.sock", "/t/Echo", "", 0, 0, &answer, &length), ND_UNAVAILABLE,
                     "/tmp/nobody-here.sock");
}

static void a_server_that_accepts_nothing_is_not_waited_for([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *path = nd_format("%s/full", directory), *answer = nullptr;
        struct sockaddr_un address = {};
        nd_autoclose int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), first = -EBADF, second = -EBADF;
        size_t length;

        expect_ok(nd_unix_address(path, &address));
        assert_int_equal(bind(listener, (struct sockaddr *) &address, sizeof address), 0);
        assert_int_equal(listen(listener, 0), 0);
        first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(connect(first, (struct sockaddr *) &address, sizeof address), 0);
        second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        /* the queue is full */
        assert_int_equal(connect(second, (struct sockaddr *) &address, sizeof address), -1);
        expect_error(nd_grpc_call_once(path, "/x/Y", "", 0, 60 * ND_SECOND_US, &answer, &length), ND_UNAVAILABLE, path);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(an_echo_comes_back, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_stream_ends_with_its_status, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_stream_is_notified_when_its_queue_has_drained, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_oversized_answer_ends_the_call_and_notifies_the_handler, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_deadline_ends_the_call_on_both_sides, set_up, tear_down),
                cmocka_unit_test_setup_teardown(deadlines_of_calls_that_their_handlers_end_leave_no_timer, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_handler_that_sends_too_much_still_has_its_call, set_up, tear_down),
                cmocka_unit_test_setup_teardown(cancelling_notifies_the_handler_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_server_that_goes_away_ends_every_call, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_unknown_method_is_an_error_that_names_it, set_up, tear_down),
                cmocka_unit_test(a_failed_connect_is_an_error_that_names_the_socket),
                cmocka_unit_test(a_server_that_accepts_nothing_is_not_waited_for),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
