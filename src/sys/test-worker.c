/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <unit/resources.h>
#include <unit/scratch.h>
#include <unit/stuck.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/worker.h"

static struct nd_error *succeeds([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        return nullptr;
}

static struct nd_error *fails(void *argument, [[maybe_unused]] int *ret_fd) {
        return nd_error_new(ND_EXHAUSTED, ENOSPC, "write '%s'", (const char *) argument);
}

static void the_worker_s_error_comes_back_whole([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nullptr;

        expect_ok(nd_worker_run("work", succeeds, nullptr, 60 * ND_SECOND_US, nullptr));
        error = nd_worker_run("work", fails, (void *) "/x", 60 * ND_SECOND_US, nullptr);
        assert_int_equal(nd_error_code(error), ND_EXHAUSTED);
        assert_int_equal(nd_error_errno(error), ENOSPC);
        assert_string_equal(nd_error_text(error), "write '/x': No space left on device");
        assert_int_equal(resources_children(), 0);
}

static struct nd_error *opens([[maybe_unused]] void *argument, int *ret_fd) {
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0 || write(fds[1], "hello", 5) != 5)
                return nd_error_new(ND_INTERNAL, errno, "pipe");
        *ret_fd = fds[0];
        return nullptr;
}

static void one_descriptor_is_handed_over([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        char text[6] = {};

        {
                nd_autoclose int fd = -EBADF;

                expect_ok(nd_worker_run("work", opens, nullptr, 60 * ND_SECOND_US, &fd));
                assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
                assert_int_equal(read(fd, text, 5), 5);
                assert_string_equal(text, "hello");
        }
        /* Not requested: it is closed. */
        expect_ok(nd_worker_run("work", opens, nullptr, 60 * ND_SECOND_US, nullptr));
        assert_int_equal(resources_descriptors(), before);
}

static struct nd_error *opens_and_fails(void *argument, int *ret_fd) {
        nd_try(opens(argument, ret_fd));
        return nd_error_new(ND_INTERNAL, 0, "too late");
}

static void a_descriptor_of_a_worker_that_failed_is_not_handed_over([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        int fd = -EBADF;

        expect_error(nd_worker_run("work", opens_and_fails, nullptr, 60 * ND_SECOND_US, &fd), ND_INTERNAL, "too late");
        assert_int_equal(fd, -EBADF);
        assert_int_equal(resources_descriptors(), before);
}

static struct nd_error *sleeps([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        (void) sleep(600);
        return nullptr;
}

static void at_the_deadline_the_worker_is_killed_and_reaped([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        uint64_t start = nd_clock_us();

        expect_error(nd_worker_run("look at '/x'", sleeps, nullptr, 100 * ND_MS_US, nullptr), ND_DEADLINE,
                     "look at '/x': timed out after 100 ms");
        assert_true(nd_clock_us() - start < 60 * ND_SECOND_US);
        assert_int_equal(resources_children(), 0);
        assert_int_equal(resources_descriptors(), before);
}

static struct nd_error *dies([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        (void) kill(getpid(), SIGKILL);
        return nullptr;
}

static void a_worker_that_dies_is_an_error_with_its_name([[maybe_unused]] void **state) {
        expect_error(nd_worker_run("look at '/x'", dies, nullptr, 60 * ND_SECOND_US, nullptr), ND_INTERNAL,
                     "look at '/x': child exited without a result");
        assert_int_equal(resources_children(), 0);
}

static struct nd_error *says_much([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autofree char *text = nd_calloc(100001, 1);

        memset(text, 'x', 100000);
        return nd_error_new(ND_INTERNAL, 0, "%s", text);
}

static void a_long_error_is_truncated_not_lost([[maybe_unused]] void **state) {
        nd_autoerror struct nd_error *error = nd_worker_run("work", says_much, nullptr, 60 * ND_SECOND_US, nullptr);
        size_t length = strlen(nd_error_text(error));

        assert_int_equal(nd_error_code(error), ND_INTERNAL);
        assert_in_range(length, 4000, 9000);
        assert_int_equal(strspn(nd_error_text(error), "x"), length);
}

static struct nd_error *changes(void *argument, [[maybe_unused]] int *ret_fd) {
        *(int *) argument = 1;
        if (chdir("/") < 0)
                return nd_error_new(ND_INTERNAL, errno, "change the directory");
        return nullptr;
}

static void changes_of_a_worker_do_not_reach_the_caller([[maybe_unused]] void **state) {
        int number = 0;

        expect_ok(nd_worker_run("work", changes, &number, 60 * ND_SECOND_US, nullptr));
        assert_int_equal(number, 0);
}

static void on_alarm([[maybe_unused]] int signal) {
}

static struct nd_error *takes_a_while([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        (void) usleep(300 * 1000);
        return nullptr;
}

static void a_signal_does_not_disturb_the_wait([[maybe_unused]] void **state) {
        struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */

        (void) sigaction(SIGALRM, &action, nullptr);
        (void) ualarm(50 * 1000, 50 * 1000);
        expect_ok(nd_worker_run("work", takes_a_while, nullptr, 60 * ND_SECOND_US, nullptr));
        (void) ualarm(0, 0);
        (void) signal(SIGALRM, SIG_DFL);
}

/* ---- on a loop ---- */

struct outcome {
        sd_event *loop;
        bool called;
        struct nd_error *error;
        int fd;
};

static void on_worker(struct nd_error *error, int fd, void *userdata) {
        struct outcome *outcome = userdata;

        assert_false(outcome->called);
        outcome->called = true;
        outcome->error = error;
        outcome->fd = fd;
        (void) sd_event_exit(outcome->loop, 0);
}

static void outcome_done(struct outcome *outcome) {
        nd_error_free(outcome->error);
        nd_close_fd(&outcome->fd);
        sd_event_unref(outcome->loop);
}

static void start(struct outcome *outcome, nd_worker_function function, uint64_t deadline_us, struct nd_worker **ret) {
        *outcome = (struct outcome) {.fd = -EBADF};
        assert_true(sd_event_new(&outcome->loop) >= 0);
        expect_ok(
                nd_worker_start(outcome->loop, "look at '/x'", function, (void *) "/x", deadline_us, on_worker, outcome, ret));
}

static void run_loop(struct outcome *outcome) {
        assert_true(sd_event_loop(outcome->loop) >= 0);
        assert_true(outcome->called);
        assert_int_equal(resources_children(), 0);
}

static void on_a_loop_error_and_descriptor_come_back([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        struct nd_worker *worker;
        struct outcome outcome;
        char text[6] = {};

        start(&outcome, opens, 60 * ND_SECOND_US, &worker);
        run_loop(&outcome);
        assert_null(outcome.error);
        assert_int_equal(read(outcome.fd, text, 5), 5);
        assert_string_equal(text, "hello");
        outcome_done(&outcome);

        start(&outcome, fails, 60 * ND_SECOND_US, &worker);
        run_loop(&outcome);
        assert_int_equal(nd_error_code(outcome.error), ND_EXHAUSTED);
        assert_int_equal(nd_error_errno(outcome.error), ENOSPC);
        assert_int_equal(outcome.fd, -EBADF);
        outcome_done(&outcome);
        assert_int_equal(resources_descriptors(), before);
}

static void on_a_loop_a_worker_that_dies_or_is_late_is_an_error_with_its_name([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        struct nd_worker *worker;
        struct outcome outcome;

        start(&outcome, dies, 60 * ND_SECOND_US, &worker);
        run_loop(&outcome);
        expect_error(nd_take_ptr(outcome.error), ND_INTERNAL, "look at '/x': child exited without a result");
        outcome_done(&outcome);

        start(&outcome, sleeps, 100 * ND_MS_US, &worker);
        run_loop(&outcome);
        expect_error(nd_take_ptr(outcome.error), ND_DEADLINE, "look at '/x': timed out after 100 ms");
        outcome_done(&outcome);
        assert_int_equal(resources_descriptors(), before);
}

static void a_cancelled_worker_never_runs_its_callback([[maybe_unused]] void **state) {
        size_t before = resources_descriptors();
        struct nd_worker *worker;
        struct outcome outcome;

        start(&outcome, sleeps, 60 * ND_SECOND_US, &worker);
        nd_worker_cancel(worker);
        for (int i = 0; i < 600 && resources_has_children(); i++)
                assert_true(sd_event_run(outcome.loop, 100 * ND_MS_US) >= 0);
        assert_false(outcome.called);
        assert_int_equal(resources_children(), 0);
        outcome_done(&outcome);
        assert_int_equal(resources_descriptors(), before);
        nd_worker_cancel(nullptr);
}

static struct nd_error *looks_into(void *argument, [[maybe_unused]] int *ret_fd) {
        struct stat st;

        return stat(argument, &st) < 0 ? nd_error_new(ND_NOT_FOUND, errno, "look") : nullptr;
}

static void on_given_up(struct nd_error *error, [[maybe_unused]] int fd, void *userdata) {
        struct outcome *outcome = userdata;

        assert_false(outcome->called);
        outcome->called = true;
        outcome->error = error;
}

/* SIGKILL does not interrupt a wait for a FUSE server that has read the request. */
static void a_worker_that_cannot_be_killed_is_abandoned_and_reaped_later([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *mount = nd_format("%s/mnt", d), *file = nd_format("%s/mnt/file", d);
        struct outcome outcome = {.fd = -EBADF};
        uint64_t begin = nd_clock_us();
        struct nd_worker *worker;
        struct stuck stuck;
        size_t before;

        scratch_mkdir(d, "mnt");
        if (!stuck_make(mount, &stuck))
                skip_because("FUSE cannot be used here");
        assert_true(sd_event_new(&outcome.loop) >= 0);
        (void) sd_event_run(outcome.loop, 0);
        before = resources_descriptors();
        expect_ok(nd_worker_start(outcome.loop, "look", looks_into, file, ND_SECOND_US / 2, on_given_up, &outcome, &worker));
        while (!outcome.called && nd_clock_us() - begin < 20 * ND_SECOND_US)
                assert_true(sd_event_run(outcome.loop, 100 * ND_MS_US) >= 0);
        expect_error(nd_take_ptr(outcome.error), ND_DEADLINE, "look: timed out after 500 ms");
        assert_true(resources_descriptors() >= before + 2); /* it is alive, and watched */
        stuck_release(&stuck);
        while (resources_descriptors() >= before + 2 && nd_clock_us() - begin < 60 * ND_SECOND_US)
                assert_true(sd_event_run(outcome.loop, 100 * ND_MS_US) >= 0);
        assert_int_equal(resources_children(), 0);
        outcome_done(&outcome);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_worker_s_error_comes_back_whole),
                cmocka_unit_test(one_descriptor_is_handed_over),
                cmocka_unit_test(a_descriptor_of_a_worker_that_failed_is_not_handed_over),
                cmocka_unit_test(at_the_deadline_the_worker_is_killed_and_reaped),
                cmocka_unit_test(a_worker_that_dies_is_an_error_with_its_name),
                cmocka_unit_test(a_long_error_is_truncated_not_lost),
                cmocka_unit_test(changes_of_a_worker_do_not_reach_the_caller),
                cmocka_unit_test(a_signal_does_not_disturb_the_wait),
                cmocka_unit_test(on_a_loop_error_and_descriptor_come_back),
                cmocka_unit_test(on_a_loop_a_worker_that_dies_or_is_late_is_an_error_with_its_name),
                cmocka_unit_test(a_cancelled_worker_never_runs_its_callback),
                cmocka_unit_test(a_worker_that_cannot_be_killed_is_abandoned_and_reaped_later),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
