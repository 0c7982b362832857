/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <sys/socket.h>

#include <unit/resources.h>

#include "base/memory.h"
#include "sys/fd-passing.h"

struct pair {
        int ends[2];
        size_t descriptors; /* open with the pair alone */
};

static struct pair pair_new(void) {
        struct pair pair = {};

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.ends), 0);
        pair.descriptors = resources_descriptors();
        return pair;
}

static void pair_done(struct pair *pair) {
        assert_int_equal(resources_descriptors(), pair->descriptors);
        nd_close_fd(&pair->ends[0]);
        nd_close_fd(&pair->ends[1]);
}

static void bytes_and_descriptors_arrive_together([[maybe_unused]] void **state) {
        nd_cleanup(pair_done) struct pair pair = pair_new();
        nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int sent[2] = {null, null}, got[3];
        char bytes[16];

        assert_int_equal(nd_fd_passing_send(pair.ends[0], "hello", 5, sent, 2, 0), 5);
        assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, got, 3, 0), 5);
        assert_memory_equal(bytes, "hello", 5);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
                nd_close_fd(&got[i]);
        }
        assert_int_equal(got[2], -EBADF);
        nd_close_fd(&null);
}

static void without_descriptors_there_are_none([[maybe_unused]] void **state) {
        nd_cleanup(pair_done) struct pair pair = pair_new();
        int got[2] = {7, 7};
        char bytes[16];

        assert_int_equal(nd_fd_passing_send(pair.ends[0], "x", 1, nullptr, 0, 0), 1);
        assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, got, 2, 0), 1);
        assert_int_equal(got[0], -EBADF);
        assert_int_equal(got[1], -EBADF);
        assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, got, 2, MSG_DONTWAIT), -EAGAIN);
        assert_int_equal(got[0], -EBADF);
}

/* CMSG_SPACE() rounds the space for one up to space for two: the second would leak. */
static void more_descriptors_than_are_taken_leave_none_open([[maybe_unused]] void **state) {
        for (size_t capacity = 1; capacity < 5; capacity++) {
                nd_cleanup(pair_done) struct pair pair = pair_new();
                nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
                int sent[5] = {null, null, null, null, null}, got[5];
                char bytes[16];

                assert_int_equal(nd_fd_passing_send(pair.ends[0], "x", 1, sent, capacity + 1, 0), 1);
                assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, got, capacity, 0), -EMSGSIZE);
                for (size_t i = 0; i < capacity; i++)
                        assert_int_equal(got[i], -EBADF);
                nd_close_fd(&null);
        }
}

static void more_bytes_than_are_taken_leave_none_open([[maybe_unused]] void **state) {
        nd_cleanup(pair_done) struct pair pair = pair_new();
        nd_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        char bytes[4];
        int got;

        assert_int_equal(nd_fd_passing_send(pair.ends[0], "hello", 5, &null, 1, 0), 5);
        assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, &got, 1, 0), -EMSGSIZE);
        assert_int_equal(got, -EBADF);
        nd_close_fd(&null);
}

static void the_end_of_file_is_reported([[maybe_unused]] void **state) {
        nd_cleanup(pair_done) struct pair pair = pair_new();
        char bytes[4];
        int got;

        nd_close_fd(&pair.ends[0]);
        pair.descriptors--;
        assert_int_equal(nd_fd_passing_receive(pair.ends[1], bytes, sizeof bytes, &got, 1, 0), 0);
        assert_int_equal(nd_fd_passing_send(pair.ends[1], "x", 1, nullptr, 0, 0), -EPIPE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bytes_and_descriptors_arrive_together),
                cmocka_unit_test(without_descriptors_there_are_none),
                cmocka_unit_test(more_descriptors_than_are_taken_leave_none_open),
                cmocka_unit_test(more_bytes_than_are_taken_leave_none_open),
                cmocka_unit_test(the_end_of_file_is_reported),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
