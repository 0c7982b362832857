/* SPDX-License-Identifier: Apache-2.0 */
/* With the real nodens-mon ($NODENS_MON) and a shell instead of the OCI runtime, which leaves a
 * child behind as `create` does. */
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/oci-runtime/monitor.h"
#include "sys/file.h"

/* The events received, and a loop to wait for them. */
struct seen {
        sd_event *loop;
        pid_t pid;
        uint64_t birth;
        struct nd_error *failure;
        bool exited, lost;
        unsigned ends;
        struct cri_monitor_end end;
        unsigned reopened;
        struct nd_error *reopening;
};

static void on_created(pid_t pid, uint64_t birth, void *userdata) {
        struct seen *seen = userdata;

        seen->pid = pid;
        seen->birth = birth;
}

static void on_failed(struct nd_error *error, void *userdata) {
        struct seen *seen = userdata;

        seen->failure = error;
}

static void on_exited(const struct cri_monitor_end *end, void *userdata) {
        struct seen *seen = userdata;

        seen->exited = true;
        seen->ends++;
        seen->end = *end;
}

static void on_lost(void *userdata) {
        struct seen *seen = userdata;

        seen->lost = true;
}

static void on_reopened(struct nd_error *error, void *userdata) {
        struct seen *seen = userdata;

        seen->reopened++;
        nd_error_free(seen->reopening);
        seen->reopening = error;
}

static const struct cri_monitor_events events = {
        .created = on_created, .failed = on_failed, .exited = on_exited, .lost = on_lost};

static void seen_open(struct seen *seen) {
        *seen = (struct seen) {};
        assert_true(sd_event_new(&seen->loop) >= 0);
}

/* A cancelled child belongs to the loop until it is reaped. */
static void reap(sd_event *loop) {
        uint64_t end = nd_clock_us() + 60 * ND_SECOND_US;

        while (resources_has_children() && nd_clock_us() < end)
                assert_true(sd_event_run(loop, 10 * ND_MS_US) >= 0);
}

static void seen_done(struct seen *seen) {
        reap(seen->loop);
        nd_error_free(seen->failure);
        nd_error_free(seen->reopening);
        sd_event_unref(seen->loop);
}

/* Runs the loop until the condition holds, for at most a minute. */
#define await(seen, condition)                                                                                                \
        do {                                                                                                                  \
                uint64_t _end = nd_clock_us() + 60 * ND_SECOND_US;                                                            \
                while (!(condition) && nd_clock_us() < _end)                                                                  \
                        assert_true(sd_event_run((seen)->loop, 100 * ND_MS_US) >= 0);                                         \
                assert_true(condition);                                                                                       \
        } while (0)

static const char *program(void) {
        const char *path = getenv("NODENS_MON");

        if (!path)
                skip_because("$NODENS_MON does not name the monitor");
        return path;
}

/* A "container" that runs a shell command. It waits until it was created: a container that ends
 * earlier fails its creation. */
static void start(struct seen *seen, const char *directory, const char *words, struct cri_monitor **ret) {
        nd_autofree char *script = nd_format("sh -c 'while [ ! -e %s/created ]; do sleep 0.01; done; %s' & echo $! > '%s/pid'",
                                             directory, words, directory);
        const char *const create[] = {"/bin/sh", "-c", script, nullptr};

        expect_ok(cri_monitor_start(seen->loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .directory = directory,
                                                                .create = create,
                                                                .deadline_us = 60 * ND_SECOND_US,
                                                                .log_directory = directory,
                                                                .log_path = "0.log",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .cgroup = ""},
                                    &events, seen, ret));
        await(seen, seen->pid > 0);
        scratch_write(directory, "created", "", 0);
}

static char *log_of(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *bytes = nullptr;
        struct nd_text text = ND_TEXT(1 << 20);
        size_t length;

        expect_ok(nd_file_read(AT_FDCWD, path, 1 << 20, &bytes, &length));
        for (const char *line = bytes; *line;) {
                size_t n = strcspn(line, "\n");

                assert_true(n > 31);
                nd_text_append(&text, line + 31, n - 30);
                line += n + 1;
        }
        return text.bytes ? nd_text_steal(&text) : nd_strdup("");
}

static void output_and_exit_status_are_recorded([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor *monitor;

        seen_open(&seen);
        start(&seen, d, "echo out; echo oops >&2; printf rest; exit 7", &monitor);
        assert_true(seen.birth > 0);
        await(&seen, seen.exited);
        assert_int_equal(seen.end.code, 7);
        assert_int_equal(seen.end.lost, 0);
        assert_true(seen.end.at > UINT64_C(1600000000000000000));
        cri_monitor_free(monitor);
        {
                nd_autofree char *log = log_of(d, "0.log");

                expect_contains(log, "stdout F out\n");
                expect_contains(log, "stderr F oops\n");
                expect_contains(log, "stdout P rest\n");
        }
}

static void a_signal_is_reported_as_128_plus_its_number([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor *monitor;

        seen_open(&seen);
        start(&seen, d, "exec sleep 100", &monitor);
        assert_int_equal(kill(seen.pid, SIGKILL), 0);
        await(&seen, seen.exited);
        assert_int_equal(seen.end.code, 137);
        cri_monitor_free(monitor);
}

static void the_last_line_of_the_oci_runtime_is_the_reason([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        const char *const create[] = {"/bin/sh", "-c", "echo first >&2; echo the reason >&2; exit 1", nullptr};
        const char *const missing[] = {"/no/such/engine", nullptr};
        struct cri_monitor_plan plan = {.program = program(),
                                        .id = "test",
                                        .uid = getuid(),
                                        .gid = getgid(),
                                        .directory = d,
                                        .create = create,
                                        .log_directory = "",
                                        .log_path = "",
                                        .cgroup = "",
                                        .deadline_us = 60 * ND_SECOND_US};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop, &plan, &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error_text(nd_take_ptr(seen.failure), "create the container: the reason");
        cri_monitor_free(monitor);

        plan.create = missing;
        expect_ok(cri_monitor_start(seen.loop, &plan, &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_INTERNAL, "execute '/no/such/engine': No such file or directory");
        cri_monitor_free(monitor);
}

static void a_container_that_died_during_create_is_not_waited_for([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        nd_autofree char *script = nd_format("sh -c 'exit 3' & echo $! > '%s/pid'; wait; exit 0", d);
        const char *const create[] = {"/bin/sh", "-c", script, nullptr};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = d,
                                                                .create = create,
                                                                .log_directory = "",
                                                                .log_path = "",
                                                                .cgroup = "",
                                                                .deadline_us = 60 * ND_SECOND_US},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_INTERNAL, "died before it could be started");
        cri_monitor_free(monitor);
}

static void an_oci_runtime_that_hangs_is_killed_with_its_descendants([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        nd_autofree char *script = nd_format("sleep 1000 & echo $! > '%s/new'; mv '%s/new' '%s/child'; sleep 1000", d, d, d);
        nd_autofree char *path = nd_format("%s/child", d), *text = nullptr;
        const char *const create[] = {"/bin/sh", "-c", script, nullptr};
        struct cri_monitor *monitor;
        pid_t child;

        seen_open(&seen);
        /* A slow host may not start anything in so little time: retry with a longer deadline. */
        for (uint64_t deadline_us = 300 * ND_MS_US; !scratch_has(d, "child"); deadline_us *= 2) {
                expect_ok(cri_monitor_start(seen.loop,
                                            &(struct cri_monitor_plan) {.program = program(),
                                                                        .id = "test",
                                                                        .uid = getuid(),
                                                                        .gid = getgid(),
                                                                        .directory = d,
                                                                        .create = create,
                                                                        .log_directory = "",
                                                                        .log_path = "",
                                                                        .cgroup = "",
                                                                        .deadline_us = deadline_us},
                                            &events, &seen, &monitor));
                await(&seen, seen.failure);
                expect_error(nd_take_ptr(seen.failure), ND_DEADLINE, "did not end in time");
                cri_monitor_free(monitor);
        }
        expect_ok(nd_file_read(AT_FDCWD, path, 64, &text, nullptr));
        child = (pid_t) strtol(text, nullptr, 10);
        await(&seen, kill(child, 0) < 0);
}

static void a_log_that_cannot_be_opened_is_the_reason_of_a_failure([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        const char *const create[] = {"/bin/true", nullptr};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = d,
                                                                .create = create,
                                                                .log_directory = d,
                                                                .log_path = "missing/0.log",
                                                                .cgroup = ""},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_NOT_FOUND, "missing/0.log': No such file");
        cri_monitor_free(monitor);
}

static void a_missing_directory_fails_the_start([[maybe_unused]] void **state) {
        nd_cleanup(seen_done) struct seen seen;
        const char *const create[] = {"/bin/true", nullptr};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = "/no/where",
                                                                .create = create,
                                                                .log_directory = "",
                                                                .log_path = "",
                                                                .cgroup = ""},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_INTERNAL, "open '/no/where'");
        cri_monitor_free(monitor);
}

static void an_oci_runtime_does_not_run_outside_its_mount_namespace([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        nd_autoclose int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        nd_autofree char *mark = nd_format("%s/ran", d);
        const char *const create[] = {"/bin/touch", mark, nullptr};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = d,
                                                                .create = create,
                                                                .log_directory = "",
                                                                .log_path = "",
                                                                .cgroup = "",
                                                                .mount_namespace = null},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_INTERNAL, "enter the OCI runtime's mount namespace: Invalid argument");
        assert_int_equal(access(mark, F_OK), -1);
        cri_monitor_free(monitor);
}

static void the_next_daemon_reconnects_to_the_monitor([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor_state found;
        struct cri_monitor *monitor;
        pid_t pid;

        seen_open(&seen);
        start(&seen, d, "while [ ! -e go ]; do sleep 0.05; done; echo late; exit 3", &monitor);
        cri_monitor_free(monitor);
        pid = seen.pid;

        expect_ok(cri_monitor_connect(seen.loop, d, &events, &seen, &found, &monitor));
        assert_non_null(monitor);
        assert_int_equal(found.phase, MONITOR_CREATED);
        assert_int_equal(found.pid, pid);
        assert_int_equal(found.birth, seen.birth);
        assert_int_equal(kill(pid, SIGTERM), 0);
        await(&seen, seen.exited);
        assert_int_equal(seen.end.code, 143);
        cri_monitor_free(monitor);

        expect_ok(cri_monitor_connect(seen.loop, d, &events, &seen, &found, &monitor));
        assert_null(monitor);
        assert_int_equal(found.phase, MONITOR_EXITED);
        assert_int_equal(found.end.code, 143);
        expect_error(cri_monitor_connect(seen.loop, "/no/where", &events, &seen, &found, &monitor), ND_NOT_FOUND, "/no/where");
}

/* The monitor is the subreaper of the processes that the OCI runtime leaves behind. */
static pid_t parent_of(pid_t pid) {
        nd_autofree char *path = nd_format("/proc/%d/status", pid), *text = nullptr;
        const char *line;

        expect_ok(nd_file_read_kernel(path, 64 * 1024, &text));
        line = strstr(text, "\nPPid:");
        assert_non_null(line);
        return (pid_t) strtol(line + strlen("\nPPid:"), nullptr, 10);
}

static void a_killed_monitor_is_reported_as_lost_without_an_exit_status([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor_state found;
        struct cri_monitor *monitor;
        pid_t victim;

        seen_open(&seen);
        start(&seen, d, "exec sleep 100", &monitor);
        victim = parent_of(seen.pid);
        assert_true(victim > 1);
        assert_int_equal(kill(victim, SIGTERM), 0); /* which it ignores */
        assert_int_equal(kill(victim, SIGKILL), 0);
        await(&seen, seen.lost);
        assert_false(seen.exited);
        assert_int_equal(kill(seen.pid, 0), 0); /* the container keeps running */
        cri_monitor_free(monitor);

        expect_ok(cri_monitor_connect(seen.loop, d, &events, &seen, &found, &monitor));
        assert_null(monitor);
        assert_int_equal(found.phase, MONITOR_CREATED);
        assert_int_equal(kill(seen.pid, SIGKILL), 0);
}

static void the_log_is_reopened_on_request([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *path = nd_format("%s/0.log", d), *rotated = nd_format("%s/0.log.1", d), *log = nullptr;
        nd_autofree char *words = nd_format("echo one; while [ ! -e %s/go ]; do sleep 0.02; done; echo two", d);
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor *monitor;

        seen_open(&seen);
        start(&seen, d, words, &monitor);
        for (struct stat status = {}; status.st_size == 0; (void) usleep(1000))
                assert_int_equal(stat(path, &status), 0);
        assert_int_equal(rename(path, rotated), 0);
        cri_monitor_reopen_log(monitor, on_reopened, &seen);
        cri_monitor_reopen_log(monitor, on_reopened, &seen);
        await(&seen, seen.reopened == 2);
        expect_ok(nd_take_ptr(seen.reopening));
        assert_int_equal(access(path, F_OK), 0);
        scratch_write(d, "go", "", 0);
        await(&seen, seen.exited);
        log = log_of(d, "0.log.1");
        expect_contains(log, "stdout F one\n");
        free(log);
        log = log_of(d, "0.log");
        expect_contains(log, "stdout F two\n");

        cri_monitor_reopen_log(monitor, on_reopened, &seen);
        await(&seen, seen.reopened == 3);
        expect_error(nd_take_ptr(seen.reopening), ND_PRECONDITION, "has exited");
        cri_monitor_free(monitor);
}

static void children_that_outlive_the_first_process_do_not_delay_its_end([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *words = nd_format("sleep 1000 & echo $! > %s/child; printf last; exit 0", d), *child = nullptr;
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor *monitor;

        seen_open(&seen);
        start(&seen, d, words, &monitor);
        await(&seen, seen.exited);
        child = scratch_read(d, "child");
        /* it was still alive */
        assert_int_equal(kill((pid_t) strtol(child, nullptr, 10), SIGKILL), 0);
        assert_int_equal(seen.end.code, 0);
        cri_monitor_free(monitor);
        expect_text(log_of(d, "0.log"), "stdout P last\n");
}

static void many_monitors_are_reconnected_quickly([[maybe_unused]] void **state) {
        enum { MONITORS = 100 };
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        struct cri_monitor *monitors[MONITORS];
        size_t descriptors = resources_descriptors();
        uint64_t begin, took;

        seen_open(&seen);
        for (size_t i = 0; i < MONITORS; i++) {
                nd_autofree char *directory = nd_format("%s/%zu", d, i);

                assert_int_equal(mkdir(directory, 0700), 0);
                seen.pid = 0;
                start(&seen, directory, "exec sleep 1000", monitors + i);
                cri_monitor_free(monitors[i]);
        }
        begin = nd_clock_us();
        for (size_t i = 0; i < MONITORS; i++) {
                nd_autofree char *directory = nd_format("%s/%zu", d, i);
                struct cri_monitor_state found;

                expect_ok(cri_monitor_connect(seen.loop, directory, &events, &seen, &found, monitors + i));
                assert_non_null(monitors[i]);
                assert_int_equal(found.phase, MONITOR_CREATED);
                (void) kill(found.pid, SIGKILL);
        }
        took = nd_clock_us() - begin;
        print_message("# %d monitors found again in %llu us\n", MONITORS, (unsigned long long) took);
        expect_figure(took < ND_SECOND_US / 2);
        await(&seen, seen.ends == MONITORS);
        for (size_t i = 0; i < MONITORS; i++)
                cri_monitor_free(monitors[i]);
        seen_done(&seen);
        seen = (struct seen) {};
        assert_int_equal(resources_descriptors(), descriptors);
}

/* ---- this program in other roles ---- */

/* An OCI runtime that connects to the console and sends no terminal. */
[[noreturn]] static void play_oci_runtime(const char *directory) {
        nd_autofree char *path = nd_format("%s/console", directory), *pid = nd_format("%d", getpid());
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof address) < 0)
                _exit(EXIT_FAILURE);
        scratch_text(directory, "engine", pid);
        for (;;)
                (void) pause();
}

/* A monitor that daemonizes with the daemon's connection and sends nothing. */
[[noreturn]] static void play_monitor(const char *directory) {
        nd_autofree char *pid = nullptr;

        if (fork() > 0)
                _exit(EXIT_SUCCESS);
        pid = nd_format("%d", getpid());
        scratch_text(directory, "silent", pid);
        for (;;)
                (void) pause();
}

static char *own_path(void) {
        char path[4096] = {};

        assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
        return nd_strdup(path);
}

static pid_t pid_in(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name), *text = nullptr;
        nd_autoerror struct nd_error *none = nd_file_read(AT_FDCWD, path, 32, &text, nullptr);

        return none ? 0 : (pid_t) strtol(text, nullptr, 10);
}

static void an_oci_runtime_that_sends_no_terminal_is_killed_at_its_deadline([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        nd_autofree char *own = own_path();
        const char *const create[] = {own, "engine", d, nullptr};
        struct cri_monitor *monitor;
        pid_t oci_runtime;

        if (geteuid() != 0)
                skip_because("with a terminal, root owns the pipe of the OCI runtime");
        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = program(),
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = d,
                                                                .create = create,
                                                                .deadline_us = 2 * ND_SECOND_US,
                                                                .grace_us = 60 * ND_SECOND_US,
                                                                .log_directory = "",
                                                                .log_path = "",
                                                                .terminal = true,
                                                                .cgroup = ""},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_DEADLINE, "did not end in time and was killed");
        oci_runtime = pid_in(d, "engine");
        assert_true(oci_runtime > 0);
        assert_int_equal(kill(oci_runtime, 0), -1);
        cri_monitor_free(monitor);
}

static void a_silent_monitor_fails_the_creation_after_the_grace_period([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_cleanup(seen_done) struct seen seen;
        nd_autofree char *own = own_path();
        const char *const create[] = {"/bin/true", nullptr};
        struct cri_monitor *monitor;

        seen_open(&seen);
        expect_ok(cri_monitor_start(seen.loop,
                                    &(struct cri_monitor_plan) {.program = own,
                                                                .id = "test",
                                                                .uid = getuid(),
                                                                .gid = getgid(),
                                                                .directory = d,
                                                                .create = create,
                                                                .deadline_us = ND_SECOND_US,
                                                                .grace_us = ND_SECOND_US / 2,
                                                                .log_directory = "",
                                                                .log_path = "",
                                                                .cgroup = ""},
                                    &events, &seen, &monitor));
        await(&seen, seen.failure);
        expect_error(nd_take_ptr(seen.failure), ND_DEADLINE, "timed out waiting for the monitor");
        cri_monitor_free(monitor);
        assert_true(pid_in(d, "silent") > 0);
        assert_int_equal(kill(pid_in(d, "silent"), SIGKILL), 0);
}

int main(int argc, char **argv) {
        if (argc == 3 && nd_streq(argv[1], "engine"))
                play_oci_runtime(argv[2]);
        if (argc > 4 && nd_streq(argv[3], "--directory"))
                play_monitor(argv[4]);

        const struct CMUnitTest tests[] = {
                cmocka_unit_test(output_and_exit_status_are_recorded),
                cmocka_unit_test(a_signal_is_reported_as_128_plus_its_number),
                cmocka_unit_test(the_last_line_of_the_oci_runtime_is_the_reason),
                cmocka_unit_test(a_container_that_died_during_create_is_not_waited_for),
                cmocka_unit_test(an_oci_runtime_that_hangs_is_killed_with_its_descendants),
                cmocka_unit_test(an_oci_runtime_that_sends_no_terminal_is_killed_at_its_deadline),
                cmocka_unit_test(a_silent_monitor_fails_the_creation_after_the_grace_period),
                cmocka_unit_test(a_log_that_cannot_be_opened_is_the_reason_of_a_failure),
                cmocka_unit_test(a_missing_directory_fails_the_start),
                cmocka_unit_test(an_oci_runtime_does_not_run_outside_its_mount_namespace),
                cmocka_unit_test(the_next_daemon_reconnects_to_the_monitor),
                cmocka_unit_test(a_killed_monitor_is_reported_as_lost_without_an_exit_status),
                cmocka_unit_test(the_log_is_reopened_on_request),
                cmocka_unit_test(children_that_outlive_the_first_process_do_not_delay_its_end),
                cmocka_unit_test(many_monitors_are_reconnected_quickly),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
