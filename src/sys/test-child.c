/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <stdio.h>

#include <unit/faults.h>
#include <unit/resources.h>
#include <unit/scratch.h>
#include <unit/stuck.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/child.h"
#include "sys/worker.h"

enum { CEILING = 1000 };

static constexpr uint64_t limit_us = 60 * ND_SECOND_US;

static struct nd_error *sh(const char *script, uint64_t deadline_us, struct nd_child_result *ret) {
        const char *const argv[] = {"sh", "-c", script, nullptr};

        return nd_child_run(&(struct nd_child_plan) {.argv = argv, .deadline_us = deadline_us, .output_ceiling = CEILING},
                            ret);
}

static void await_absence(const char *path) {
        for (uint64_t end = nd_clock_us() + limit_us; access(path, F_OK) == 0; (void) usleep(10 * 1000))
                assert_true(nd_clock_us() < end);
}

static void output_errors_and_exit_code_come_back([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        size_t before = resources_descriptors();

        expect_ok(sh("echo out; echo err >&2; exit 7", ND_SECOND_US * 60, &result));
        assert_int_equal(result.code, 7);
        assert_int_equal(result.signal, 0);
        assert_string_equal(result.output, "out\n");
        assert_string_equal(result.errors, "err\n");
        assert_false(result.timed_out);
        assert_false(result.truncated);
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void the_signal_that_ended_it_comes_back([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        expect_ok(sh("kill -TERM $$", 0, &result));
        assert_int_equal(result.code, -1);
        assert_int_equal(result.signal, SIGTERM);
}

static void input_is_as_given_or_empty([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result with = {}, without = {};
        const char *const argv[] = {"cat", nullptr};

        expect_ok(nd_child_run(
                &(struct nd_child_plan) {.argv = argv, .input = "a\nb", .input_length = 3, .output_ceiling = CEILING}, &with));
        assert_string_equal(with.output, "a\nb");
        expect_ok(nd_child_run(&(struct nd_child_plan) {.argv = argv, .output_ceiling = CEILING}, &without));
        assert_string_equal(without.output, "");
        assert_int_equal(without.code, 0);
}

static void the_environment_is_ours_or_the_one_given([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result ours = {}, given = {};
        const char *const argv[] = {"/bin/sh", "-c", "echo $ND_TEST", nullptr};
        const char *const environment[] = {"ND_TEST=given", nullptr};

        (void) setenv("ND_TEST", "ours", 1);
        expect_ok(nd_child_run(&(struct nd_child_plan) {.argv = argv, .output_ceiling = CEILING}, &ours));
        assert_string_equal(ours.output, "ours\n");
        expect_ok(nd_child_run(&(struct nd_child_plan) {.argv = argv, .environment = environment, .output_ceiling = CEILING},
                               &given));
        assert_string_equal(given.output, "given\n");
}

static void starting_a_program_that_cannot_be_executed_fails([[maybe_unused]] void **state) {
        static const char *const missing[] = {"/nonexistent/program", nullptr}, *const directory[] = {"/", nullptr};
        struct nd_child_result result = {};
        size_t before = resources_descriptors();

        expect_error(nd_child_run(&(struct nd_child_plan) {.argv = missing}, &result), ND_NOT_FOUND,
                     "execute '/nonexistent/program': No such file or directory");
        expect_error(nd_child_run(&(struct nd_child_plan) {.argv = directory}, &result), ND_DENIED, "execute '/'");
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void at_the_deadline_the_whole_group_is_killed([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        nd_autofree char *path = nullptr;

        /* A slow host may start nothing in so little time: then retry with more. */
        for (uint64_t deadline_us = 300 * ND_MS_US; !result.output || !*result.output; deadline_us *= 2) {
                assert_true(deadline_us < limit_us);
                nd_child_result_done(&result);
                expect_ok(sh("sleep 600 & echo $!; sleep 600", deadline_us, &result));
                assert_true(result.timed_out);
        }
        /* Dead processes have none. */
        path = nd_format("/proc/%.*s/exe", (int) strcspn(result.output, "\n"), result.output);
        await_absence(path);
        assert_int_equal(resources_children(), 0);
}

static void output_above_the_ceiling_is_dropped_and_the_program_goes_on([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        expect_ok(sh("i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 5",
                     0, &result));
        assert_int_equal(result.code, 5);
        assert_true(result.truncated);
        assert_int_equal(strlen(result.output), CEILING);
}

static void a_program_that_never_stops_writing_is_killed_at_its_deadline([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        uint64_t start = nd_clock_us();

        expect_ok(sh("exec cat /dev/zero", 300 * ND_MS_US, &result));
        assert_true(result.timed_out);
        assert_true(nd_clock_us() - start < limit_us);
}

static void a_grandchild_that_keeps_writing_does_not_delay_the_callback([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        /* The writer leaves the session, so it is not in the group; it ends when its pipe is
         * closed. */
        expect_ok(sh("setsid cat /dev/zero & exit 4", limit_us, &result));
        assert_int_equal(result.code, 4);
        assert_false(result.timed_out);
}

static void all_output_before_the_exit_is_kept([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        static const char *const argv[] = {"head", "-c", "60000", "/dev/zero", nullptr};

        expect_ok(nd_child_run(&(struct nd_child_plan) {.argv = argv, .output_ceiling = 60000}, &result));
        assert_int_equal(result.code, 0);
        assert_false(result.truncated); /* the bytes are nulls: truncation would be above 60,000 */
}

static void signals_are_as_a_program_expects_them([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};
        sigset_t blocked, before;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &blocked, &before);
        (void) signal(SIGPIPE, SIG_IGN);
        expect_ok(sh("grep -E '^Sig(Blk|Ign)' /proc/self/status", 0, &result));
        (void) sigprocmask(SIG_SETMASK, &before, nullptr);
        (void) signal(SIGPIPE, SIG_DFL);
        assert_string_equal(result.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void no_descriptor_of_ours_reaches_the_program([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        expect_ok(sh("ls /proc/$$/fd", 0, &result));
        assert_string_equal(result.output, "0\n1\n2\n");
}

static void no_descriptor_that_we_have_inherited_reaches_the_program([[maybe_unused]] void **state) {
        static const char *const argv[] = {"sh", "-c", "ls /proc/$$/fd", nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result plain = {}, given = {};
        nd_autoclose int directory = open("/", O_RDONLY | O_DIRECTORY), high = fcntl(directory, F_DUPFD, 200);
        int descriptors[] = {directory, -EBADF, directory};

        assert_true(directory >= 0 && high >= 200);
        expect_ok(sh(argv[2], 0, &plain));
        assert_string_equal(plain.output, "0\n1\n2\n");
        expect_ok(nd_child_run(&(struct nd_child_plan) {.argv = argv,
                                                        .output_ceiling = CEILING,
                                                        .descriptors = descriptors,
                                                        .descriptor_count = nd_count_of(descriptors)},
                               &given));
        assert_string_equal(given.output, "0\n1\n2\n3\n5\n");
}

static int ends; /* number of callbacks */

static void on_end([[maybe_unused]] struct nd_child_result *result, [[maybe_unused]] void *userdata) {
        ends++;
}

static void a_cancelled_child_is_killed_and_its_callback_never_runs([[maybe_unused]] void **state) {
        const char *const argv[] = {"sleep", "60", nullptr};
        size_t before = resources_descriptors();
        uint64_t start = nd_clock_us();
        struct nd_child *child;
        sd_event *loop;

        assert_true(sd_event_new(&loop) >= 0);
        ends = 0;
        nd_child_cancel(nullptr);
        expect_ok(nd_child_start(loop, &(struct nd_child_plan) {.argv = argv}, on_end, nullptr, &child));
        nd_child_cancel(child);
        while (nd_clock_us() - start < limit_us && resources_descriptors() > before + 3)
                (void) sd_event_run(loop, 100 * ND_MS_US);
        sd_event_unref(loop);
        assert_int_equal(ends, 0);
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void on_stuck_end(struct nd_child_result *result, void *userdata) {
        ends++;
        *(bool *) userdata = result->timed_out && result->code == -1;
}

static void a_child_that_cannot_be_killed_is_not_waited_for([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *mount = nd_format("%s/mnt", d), *file = nd_format("%s/mnt/file", d);
        const char *const argv[] = {"cat", file, nullptr};
        uint64_t start = nd_clock_us();
        struct nd_child *child;
        bool timed_out = false;
        struct stuck stuck;
        size_t before;
        sd_event *loop;

        scratch_mkdir(d, "mnt");
        if (!stuck_make(mount, &stuck))
                skip_because("FUSE cannot be used here");
        before = resources_descriptors();
        assert_true(sd_event_new(&loop) >= 0);
        ends = 0;
        expect_ok(nd_child_start(loop, &(struct nd_child_plan) {.argv = argv, .deadline_us = ND_SECOND_US}, on_stuck_end,
                                 &timed_out, &child));
        while (ends == 0 && nd_clock_us() - start < 30 * ND_SECOND_US)
                (void) sd_event_run(loop, 100 * ND_MS_US);
        assert_int_equal(ends, 1);
        assert_true(timed_out);
        stuck_release(&stuck);
        /* The loop has some. */
        while (resources_descriptors() > before + 3 && nd_clock_us() - start < 60 * ND_SECOND_US)
                (void) sd_event_run(loop, 100 * ND_MS_US);
        sd_event_unref(loop);
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
        assert_int_equal(ends, 1);
}

/* A worker that starts a program, waits until it runs, and dies. */
static struct nd_error *starts_and_dies(void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autofree char *script = nd_format("echo $$ >%s/new; mv %s/new %s/pid; exec sleep 60", (char *) argument,
                                             (char *) argument, (char *) argument);
        const char *const argv[] = {"/bin/sh", "-c", script, nullptr};
        struct nd_child *child;
        sd_event *loop;

        if (sd_event_new(&loop) < 0)
                return nd_error_new(ND_INTERNAL, 0, "no loop");
        nd_try(nd_child_start(loop, &(struct nd_child_plan) {.argv = argv, .dies_with_us = true}, nullptr, nullptr, &child));
        while (!scratch_has(argument, "pid"))
                (void) usleep(1000);
        (void) kill(getpid(), SIGKILL);
        return nullptr;
}

static void a_child_that_dies_with_its_parent_does_not_outlive_a_kill([[maybe_unused]] void **state) {
        scratch_directory directory = scratch_make();
        nd_autofree char *pid = nullptr, *path = nullptr;

        expect_error(nd_worker_run("start", starts_and_dies, directory, limit_us, nullptr), ND_INTERNAL, "exited without");
        pid = scratch_read(directory, "pid");
        path = nd_format("/proc/%.*s/exe", (int) strcspn(pid, "\n"),
                         pid); /* none for a dead process that its parent has not reaped */
        await_absence(path);
}

static void without_group_signals_only_the_program_is_killed([[maybe_unused]] void **state) {
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        faults_arm(FAULT_PIDFD_SEND_SIGNAL, 1, EINVAL, false); /* as a kernel before 6.9 does */
        expect_ok(sh("exec sleep 60", 200 * ND_MS_US, &result));
        assert_true(faults_disarm());
        assert_true(result.timed_out);
        assert_int_equal(result.signal, SIGKILL);
}

static void an_error_has_the_exit_status_and_the_last_line_of_output([[maybe_unused]] void **state) {
        char said[] = "first\nlast words \n\n", nothing[] = "";

        expect_ok(nd_child_result_error(&(struct nd_child_result) {.errors = said}, "crun"));
        expect_error_text(nd_child_result_error(&(struct nd_child_result) {.code = 2, .errors = said}, "crun"),
                          "crun ended with code 2: last words");
        expect_error_text(nd_child_result_error(&(struct nd_child_result) {.code = 2, .errors = nothing}, "crun"),
                          "crun ended with code 2");
        expect_error_text(nd_child_result_error(&(struct nd_child_result) {.code = 2}, "crun"), "crun ended with code 2");
        expect_error_text(nd_child_result_error(&(struct nd_child_result) {.code = -1, .signal = 9, .errors = said}, "crun"),
                          "crun was killed by signal 9; last output: last words");
        expect_error(nd_child_result_error(&(struct nd_child_result) {.timed_out = true, .errors = said}, "crun"), ND_DEADLINE,
                     "crun did not end in time; last output: last words");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_errors_and_exit_code_come_back),
                cmocka_unit_test(the_signal_that_ended_it_comes_back),
                cmocka_unit_test(input_is_as_given_or_empty),
                cmocka_unit_test(the_environment_is_ours_or_the_one_given),
                cmocka_unit_test(starting_a_program_that_cannot_be_executed_fails),
                cmocka_unit_test(at_the_deadline_the_whole_group_is_killed),
                cmocka_unit_test(output_above_the_ceiling_is_dropped_and_the_program_goes_on),
                cmocka_unit_test(a_program_that_never_stops_writing_is_killed_at_its_deadline),
                cmocka_unit_test(a_grandchild_that_keeps_writing_does_not_delay_the_callback),
                cmocka_unit_test(all_output_before_the_exit_is_kept),
                cmocka_unit_test(signals_are_as_a_program_expects_them),
                cmocka_unit_test(no_descriptor_of_ours_reaches_the_program),
                cmocka_unit_test(no_descriptor_that_we_have_inherited_reaches_the_program),
                cmocka_unit_test(a_cancelled_child_is_killed_and_its_callback_never_runs),
                cmocka_unit_test(a_child_that_cannot_be_killed_is_not_waited_for),
                cmocka_unit_test(a_child_that_dies_with_its_parent_does_not_outlive_a_kill),
                cmocka_unit_test(without_group_signals_only_the_program_is_killed),
                cmocka_unit_test(an_error_has_the_exit_status_and_the_last_line_of_output),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
