/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "mon/attach.h"

/* A monitor with clients whose other ends the test holds. */
struct scene {
        struct mon_control control;
        struct mon_attach attach;
        int connections[CONTROL_CONNECTIONS];
        int outputs[CONTROL_CONNECTIONS];
        int inputs[CONTROL_CONNECTIONS];
};

static void open_pair(int type, int *ret_ours, int *ret_theirs) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
}

static void scene_begin(struct scene *scene) {
        *scene = (struct scene) {.control.listener = -EBADF};
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                scene->control.connections[i] = scene->connections[i] = -EBADF;
                scene->outputs[i] = scene->inputs[i] = -EBADF;
        }
        mon_attach_init(&scene->attach, &scene->control);
}

static void scene_end(struct scene *scene) {
        for (size_t i = 0; i < CONTROL_CONNECTIONS; i++) {
                mon_attach_remove(&scene->attach, i);
                nd_close_fd(&scene->control.connections[i]);
                nd_close_fd(&scene->connections[i]);
                nd_close_fd(&scene->outputs[i]);
                nd_close_fd(&scene->inputs[i]);
        }
}

/* Returns the type of the reply. */
static char said(const struct scene *scene, size_t which) {
        char bytes[ND_MONITOR_MESSAGE];
        ssize_t n = recv(scene->connections[which], bytes, sizeof bytes, MSG_DONTWAIT);

        return n > 0 ? bytes[0] : '-';
}

static void join(struct scene *scene, size_t which) {
        nd_cleanup(mon_control_fds_done) struct mon_control_fds passed = {.fds = {-EBADF, -EBADF, -EBADF}};

        open_pair(SOCK_SEQPACKET, &scene->connections[which], &scene->control.connections[which]);
        open_pair(SOCK_STREAM, &scene->inputs[which], &passed.fds[0]);
        open_pair(SOCK_STREAM, &scene->outputs[which], &passed.fds[1]);
        mon_attach_add(&scene->attach, which, ND_MONITOR_STDIN | ND_MONITOR_STDOUT, &passed);
}

/* Writes output until a client stalls it; returns how much was written. */
static size_t fill(struct scene *scene, uint64_t now_us) {
        static const char piece[ATTACH_PIECE];
        size_t given = 0, room;

        while ((room = mon_attach_room(&scene->attach, 0, 1 << 20, now_us)) > 0) {
                assert_int_equal(room, ATTACH_PIECE);
                mon_attach_write_output(&scene->attach, 0, piece, room);
                given += room;
                assert_true(given < 1 << 24);
        }
        return given;
}

static size_t take_all(const struct scene *scene, size_t which) {
        char bytes[65536];
        size_t taken = 0;
        ssize_t n;

        while ((n = recv(scene->outputs[which], bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
                taken += (size_t) n;
        return taken;
}

static void without_clients_all_may_be_read([[maybe_unused]] void **state) {
        nd_cleanup(scene_end) struct scene scene;

        scene_begin(&scene);
        assert_int_equal(mon_attach_room(&scene.attach, 0, 12345, 1), 12345);
        assert_int_equal(mon_attach_deadline(&scene.attach), 0);
}

static void every_client_gets_everything([[maybe_unused]] void **state) {
        nd_cleanup(scene_end) struct scene scene;
        char got[8];

        scene_begin(&scene);
        for (size_t i = 1; i < 4; i++) {
                join(&scene, i);
                assert_int_equal(said(&scene, i), ND_MONITOR_ATTACHED);
        }
        mon_attach_write_output(&scene.attach, 0, "hello", 5);
        mon_attach_write_output(&scene.attach, 1, "errors", 6);
        for (size_t i = 1; i < 4; i++) {
                assert_int_equal(recv(scene.outputs[i], got, sizeof got, MSG_DONTWAIT), 5);
                assert_memory_equal(got, "hello", 5);
        }
        mon_attach_close_output(&scene.attach, 0);
        assert_int_equal(recv(scene.outputs[1], got, sizeof got, MSG_DONTWAIT), 0);
}

static void a_stalled_client_is_disconnected_and_others_continue([[maybe_unused]] void **state) {
        nd_cleanup(scene_end) struct scene scene;
        uint64_t time_us = 1000000;

        scene_begin(&scene);
        join(&scene, 1);
        join(&scene, 2);
        (void) said(&scene, 1);
        (void) said(&scene, 2);
        assert_true(fill(&scene, time_us) > 0);
        (void) take_all(&scene, 2);
        assert_true(mon_attach_stalled_fd(&scene.attach, 1, 0) >= 0);
        mon_attach_resume(&scene.attach, 2, time_us);
        assert_int_equal(mon_attach_deadline(&scene.attach), time_us + mon_attach_stall_timeout_us);
        mon_attach_drop_late(&scene.attach, time_us + mon_attach_stall_timeout_us - 1);
        assert_int_equal(said(&scene, 1), '-');
        mon_attach_drop_late(&scene.attach, time_us + mon_attach_stall_timeout_us);
        assert_int_equal(said(&scene, 1), ND_MONITOR_DROPPED);
        assert_int_equal(said(&scene, 2), '-');
        assert_int_equal(mon_attach_deadline(&scene.attach), 0);
        assert_int_equal(mon_attach_room(&scene.attach, 0, 1 << 20, time_us), ATTACH_PIECE);
}

/* The client stalls again and again: its reading must earn back its stalls. */
static bool survives(size_t rate) {
        nd_cleanup(scene_end) struct scene scene;
        uint64_t time_us = 1000000;

        scene_begin(&scene);
        join(&scene, 1);
        (void) said(&scene, 1);
        (void) fill(&scene, time_us);
        for (size_t round = 0; round < 200; round++) {
                size_t taken = take_all(&scene, 1);

                time_us += taken * ND_SECOND_US / rate;
                mon_attach_drop_late(&scene.attach, time_us);
                if (!scene.attach.clients[1].attached)
                        return false;
                mon_attach_resume(&scene.attach, 1, time_us);
                (void) fill(&scene, time_us);
        }
        return true;
}

static void a_slow_client_is_served_and_a_crawling_one_is_disconnected([[maybe_unused]] void **state) {
        assert_true(survives((size_t) 2 * ATTACH_RATE));
        assert_false(survives(ATTACH_RATE / 4));
}

static void a_client_beyond_the_limit_gets_an_error([[maybe_unused]] void **state) {
        nd_cleanup(scene_end) struct scene scene;

        scene_begin(&scene);
        for (size_t i = 0; i <= ATTACH_CLIENTS; i++)
                join(&scene, i);
        assert_true(scene.attach.clients[ATTACH_CLIENTS - 1].attached);
        assert_false(scene.attach.clients[ATTACH_CLIENTS].attached);
        assert_int_equal(said(&scene, ATTACH_CLIENTS), ND_MONITOR_ATTACHED);
}

static void input_waits_until_the_container_reads_it([[maybe_unused]] void **state) {
        nd_cleanup(scene_end) struct scene scene;
        nd_autoclose int reading = -EBADF, writing = -EBADF;
        char bytes[65536] = {};
        int fds[2];

        scene_begin(&scene);
        join(&scene, 1);
        assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        reading = fds[0];
        writing = fds[1];
        while (write(writing, bytes, sizeof bytes) > 0)
                ;
        assert_int_equal(send(scene.inputs[1], "typed", 5, 0), 5);
        mon_attach_read_input(&scene.attach, 1);
        assert_true(mon_attach_write_input(&scene.attach, writing));
        assert_int_equal(scene.attach.length, 5);
        while (read(reading, bytes, sizeof bytes) > 0)
                ;
        assert_true(mon_attach_write_input(&scene.attach, writing));
        assert_int_equal(scene.attach.length, 0);
        assert_int_equal(read(reading, bytes, sizeof bytes), 5);
        assert_false(scene.attach.input_ended);
        nd_close_fd(&scene.inputs[1]);
        mon_attach_read_input(&scene.attach, 1);
        assert_true(scene.attach.input_ended);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_clients_all_may_be_read),
                cmocka_unit_test(every_client_gets_everything),
                cmocka_unit_test(a_stalled_client_is_disconnected_and_others_continue),
                cmocka_unit_test(a_slow_client_is_served_and_a_crawling_one_is_disconnected),
                cmocka_unit_test(a_client_beyond_the_limit_gets_an_error),
                cmocka_unit_test(input_waits_until_the_container_reads_it),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
