/* SPDX-License-Identifier: Apache-2.0 */
/* Runs commands in a container of the real crun, created by the real nodens-mon ($NODENS_MON). Its
 * root is the host's, read-only, in a mount namespace of the test. */
#include <unit/expect.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/oci-runtime/exec.h"
#include "cri/oci-runtime/monitor.h"
#include "cri/oci-runtime/oci-runtime.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/program.h"

enum { USER = 1234, OOM = 321 };

struct fixture {
        char *root;
        sd_event *loop;
        struct cri_config config;
        struct cri_sandbox sandbox;
        struct cri_container container;
        struct cri_monitor *monitor;
        char *parent; /* cgroup */
        bool created, oci_runtime_done, exited;
        struct cri_monitor_end end;
        struct nd_error *failure;

        unsigned answers;
        struct nd_error *error;
        int code;
        struct nd_text output, errors;
};

static void on_created(pid_t pid, [[maybe_unused]] uint64_t birth, void *userdata) {
        struct fixture *f = userdata;

        f->created = true;
        f->container.pid = pid;
}

static void on_failed(struct nd_error *error, void *userdata) {
        struct fixture *f = userdata;

        f->failure = error;
}

static void on_exited(const struct cri_monitor_end *end, void *userdata) {
        struct fixture *f = userdata;

        f->exited = true;
        f->end = *end;
}

static void on_lost([[maybe_unused]] void *userdata) {
        fail_msg("the monitor was lost");
}

static const struct cri_monitor_events events = {
        .created = on_created, .failed = on_failed, .exited = on_exited, .lost = on_lost};

static void on_oci_runtime(struct nd_error *error, void *userdata) {
        struct fixture *f = userdata;

        f->oci_runtime_done = true;
        expect_ok(error);
}

#define await(f, condition)                                                                                                   \
        do {                                                                                                                  \
                uint64_t _end = nd_clock_us() + 60 * ND_SECOND_US;                                                            \
                while (!(condition) && nd_clock_us() < _end)                                                                  \
                        assert_true(sd_event_run((f)->loop, 100 * ND_MS_US) >= 0);                                            \
                assert_true(condition);                                                                                       \
        } while (0)

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

static void write_bundle(struct fixture *f, const char *words) {
        nd_autofree char *directory = cri_path_of_container(&f->config, &f->container), *name = nullptr, *text = nullptr;
        nd_autofree char *rootfs = nd_format("%s/rootfs", f->root);
        nd_autofree char *quoted = nd_text_quote(words);

        scratch_mkdir(f->root, directory + strlen(f->root) + 1);
        name = nd_format("%s/config.json", directory + strlen(f->root) + 1);
        text = nd_format(
                "{\"ociVersion\":\"1.0.2\",\"root\":{\"path\":\"%s\",\"readonly\":true},\"hostname\":\"test\","
                "\"process\":{\"terminal\":false,\"args\":[\"/bin/sh\",\"-c\",%s],\"cwd\":\"/\",\"oomScoreAdj\":%d,"
                "\"user\":{\"uid\":%d,\"gid\":%d,\"additionalGids\":[77]},\"env\":[\"PATH=/usr/bin:/bin\",\"MARK=seen\"]},"
                "\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
                "{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\",\"mode=755\"]}],"
                "\"linux\":{\"cgroupsPath\":\"%s/%s\",\"namespaces\":[{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"ipc\"},"
                "{\"type\":\"uts\"},{\"type\":\"network\"}]}}",
                rootfs, quoted, OOM, USER, USER, f->parent, f->container.id);
        scratch_write(f->root, name, text, strlen(text));
}

static void run_container(struct fixture *f) {
        nd_autofree char *bundle = cri_path_of_container(&f->config, &f->container);
        nd_autofree char *run = cri_path_of_container_run(&f->config, f->container.id), *pid = nd_format("%s/pid", run);
        nd_cleanup(nd_strings_done) struct nd_strings argv = {};
        struct cri_oci_runtime_call *call;

        scratch_mkdir(f->root, run + strlen(f->root) + 1);
        expect_ok(cri_oci_runtime_create_argv(&f->config, "", f->container.id, bundle, pid, nullptr, &argv));
        expect_ok(cri_monitor_start(f->loop,
                                    &(struct cri_monitor_plan) {.program = f->config.monitor,
                                                                .id = f->container.id,
                                                                .directory = run,
                                                                .create = (const char *const *) argv.items,
                                                                .deadline_us = 60 * ND_SECOND_US,
                                                                .log_directory = f->root,
                                                                .log_path = "0.log",
                                                                .uid = USER,
                                                                .gid = USER,
                                                                .cgroup = ""},
                                    &events, f, &f->monitor));
        await(f, f->created || f->failure);
        expect_ok(nd_take_ptr(f->failure));
        f->container.cgroup = nd_format("%s/%s", f->parent, f->container.id);
        expect_ok(cri_oci_runtime_start(f->loop, &f->config, "", f->container.id, on_oci_runtime, f, &call));
        await(f, f->oci_runtime_done);
        f->container.state = CONTAINER_RUNNING;
}

static void set_up(struct fixture *f, const char *words) {
        nd_cleanup(nd_cgroup_done) struct nd_cgroup cgroup = {};
        nd_autofree char *rootfs = nullptr;
        nd_autofree char *crun = nd_program_find(getenv("PATH") ?: "", "crun");
        const char *mon = getenv("NODENS_MON");

        *f = (struct fixture) {.output = ND_TEXT(64 << 20), .errors = ND_TEXT(64 << 20)};
        expect_ok(nd_cgroup_discover(&cgroup));
        if (!mon || geteuid() != 0 || cgroup.layout != ND_CGROUP_UNIFIED || !crun)
                skip_because("a container needs root, cgroup v2, crun and $NODENS_MON");
        f->root = scratch_make();
        cri_config_init(&f->config);
        replace(&f->config.state, nd_format("%s/state", f->root));
        replace(&f->config.run, nd_format("%s/run", f->root));
        replace(&f->config.monitor, nd_strdup(mon));
        f->config.systemd_cgroups = false;
        assert_true(sd_event_new(&f->loop) >= 0);
        cri_pod_table_new_id(f->sandbox.id);
        cri_pod_table_new_id(f->container.id);
        f->container.sandbox = &f->sandbox;
        f->sandbox.request.runtime_handler = (char *) "";
        /* other pid namespaces may share the cgroup tree */
        f->parent = nd_format("/nodens-test-%.12s", f->sandbox.id);

        expect_ok(nd_mount_namespace_private());
        rootfs = nd_format("%s/rootfs", f->root);
        assert_int_equal(mkdir(rootfs, 0755), 0);
        assert_int_equal(mount("/", rootfs, nullptr, MS_BIND, nullptr), 0);
        write_bundle(f, words);
        run_container(f);
}

static void tear_down(struct fixture *f) {
        nd_autofree char *rootfs = nd_format("%s/rootfs", f->root), *cgroup = nd_format(ND_CGROUP_MOUNT "%s", f->parent);
        struct cri_oci_runtime_call *call;

        f->oci_runtime_done = false;
        expect_ok(cri_oci_runtime_delete(f->loop, &f->config, "", f->container.id, on_oci_runtime, f, &call));
        await(f, f->oci_runtime_done);
        await(f, f->exited);
        cri_monitor_free(f->monitor);
        await(f, !resources_has_children()); /* the loop reaps killed children */
        assert_int_equal(rmdir(cgroup), 0);  /* fails unless the cgroup is empty */
        assert_int_equal(umount2(rootfs, 0), 0);
        sd_event_unref(f->loop);
        cri_config_done(&f->config);
        scratch_remove(&f->root);
        free(f->container.cgroup);
        free(f->parent);
        nd_text_done(&f->output);
        nd_text_done(&f->errors);
}

static void on_answer(struct nd_error *error, struct cri_exec_result *result, void *userdata) {
        struct fixture *f = userdata;

        f->answers++;
        nd_error_free(f->error);
        f->error = error;
        if (!result)
                return;
        f->code = result->code;
        f->output.length = f->errors.length = 0;
        nd_text_append(&f->output, result->output ?: "", result->output_length);
        nd_text_append(&f->errors, result->errors ?: "", result->errors_length);
}

static struct nd_error *start(struct fixture *f, const struct nd_strings *command, uint64_t timeout_us,
                              struct cri_exec **ret) {
        return cri_exec_start(
                f->loop, &f->config,
                &(struct cri_exec_plan) {.container = &f->container, .command = command, .timeout_us = timeout_us}, on_answer,
                f, ret);
}

static struct cri_exec *begin(struct fixture *f, const char *const *words, uint64_t timeout_us) {
        nd_cleanup(nd_strings_done) struct nd_strings command = {};
        struct cri_exec *exec = nullptr;

        for (; *words; words++)
                nd_strings_add(&command, *words);
        expect_ok(start(f, &command, timeout_us, &exec));
        return exec;
}

/* Runs a shell command and waits for it. */
static void shell(struct fixture *f, const char *words, uint64_t timeout_us) {
        unsigned before = f->answers;

        (void) begin(f, (const char *const[]) {"/bin/sh", "-c", words, nullptr}, timeout_us);
        await(f, f->answers == before + 1);
}

/* The number of cgroups below the container's. */
static size_t cgroups(const struct fixture *f) {
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s", f->container.cgroup);
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        expect_ok(nd_dir_list(AT_FDCWD, path, 1000, &names));
        return names.count;
}

static void exec_returns_output_and_exit_code([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        shell(&f, "echo out; echo oops >&2; exit 9", 60 * ND_SECOND_US);
        expect_ok(nd_take_ptr(f.error));
        assert_int_equal(f.code, 9);
        assert_string_equal(nd_text_get(&f.output), "out\n");
        assert_string_equal(nd_text_get(&f.errors), "oops\n");

        shell(&f, "kill -9 $$", 0);
        expect_ok(nd_take_ptr(f.error));
        assert_int_equal(f.code, 137);
        shell(&f, "printf 'a\\0b'", 0);
        assert_int_equal(f.output.length, 3);
        assert_int_equal(cgroups(&f), 0);
        tear_down(&f);
}

static void a_command_has_the_user_and_environment_of_the_container([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        shell(&f, "id -u; id -g; id -G; echo $MARK; cat /proc/self/oom_score_adj; echo again >/dev/stdout; ls /proc/self/fd",
              0);
        expect_ok(nd_take_ptr(f.error));
        assert_string_equal(nd_text_get(&f.errors), "");
        /* 3 is the descriptor of ls itself */
        assert_string_equal(nd_text_get(&f.output), "1234\n1234\n1234 77\nseen\n321\nagain\n0\n1\n2\n3\n");
        shell(&f, "cat /proc/self/cgroup", 0);
        expect_contains(nd_text_get(&f.output), "/exec-");
        tear_down(&f);
}

static void a_missing_executable_fails_the_call([[maybe_unused]] void **state) {
        nd_cleanup(nd_strings_done) struct nd_strings none = {};
        struct cri_exec *exec;
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        (void) begin(&f, (const char *const[]) {"/no/such/program", nullptr}, 0);
        await(&f, f.answers == 1);
        expect_error(nd_take_ptr(f.error), ND_INTERNAL, "/no/such/program");
        expect_error(start(&f, &none, 0, &exec), ND_INVALID, "no command");
        assert_int_equal(cgroups(&f), 0);

        f.container.state = CONTAINER_EXITED;
        nd_strings_add(&none, "true");
        expect_error(start(&f, &none, 0, &exec), ND_PRECONDITION, "is not running");
        tear_down(&f);
}

static void exec_in_a_container_that_just_died_fails_with_precondition([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        assert_int_equal(kill(f.container.pid, SIGKILL), 0);
        await(&f, f.exited);
        shell(&f, "true", 0);
        expect_error(nd_take_ptr(f.error), ND_PRECONDITION, "is not running");
        tear_down(&f);
}

static unsigned count_processes_of(const char *cgroup) {
        nd_autofree char *path = nd_format("%s/cgroup.procs", cgroup), *text = nullptr;
        unsigned count = 0;

        expect_ok(nd_file_read_kernel(path, 1 << 20, &text));
        for (const char *at = text; (at = strchr(at, '\n')); at++)
                count++;
        return count;
}

/* The number of processes in the container, without those of commands. */
static unsigned count_processes(const struct fixture *f) {
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s", f->container.cgroup);

        return count_processes_of(path);
}

/* The number of processes of the only command; 0: it has no cgroup yet. */
static unsigned count_of_command(const struct fixture *f) {
        nd_autofree char *path = nd_format(ND_CGROUP_MOUNT "%s", f->container.cgroup), *own = nullptr;
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        expect_ok(nd_dir_list(AT_FDCWD, path, 1000, &names));
        if (names.count != 1)
                return 0;
        own = nd_format("%s/%s", path, names.items[0]);
        return count_processes_of(own);
}

static void a_timeout_kills_the_command_and_its_descendants([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        shell(&f, "setsid sleep 997 & (setsid sleep 998 &) ; trap '' TERM; echo x; sleep 999", 500 * ND_MS_US);
        expect_error(nd_take_ptr(f.error), ND_DEADLINE, "did not end within 500 ms");
        await(&f, cgroups(&f) == 0);
        await(&f, count_processes(&f) == 1); /* the kernel may take a moment to reap them */
        tear_down(&f);
}

static void a_server_that_a_hook_started_lives_on_in_the_container([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        shell(&f, "setsid sleep 500 >/dev/null 2>&1 & sleep 0.1; echo started", 60 * ND_SECOND_US);
        expect_ok(nd_take_ptr(f.error));
        assert_string_equal(nd_text_get(&f.output), "started\n");
        assert_int_equal(cgroups(&f), 0);
        assert_int_equal(count_processes(&f), 2);
        tear_down(&f);
}

/* Commands that ran when the daemon was killed: no client waits for them any more. */
static void a_command_of_an_earlier_daemon_is_killed([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        (void) begin(&f, (const char *const[]) {"/bin/sh", "-c", "setsid sleep 998 & sleep 999", nullptr}, 0);
        await(&f, count_of_command(&f) >= 2);
        cri_exec_forget(f.loop, &f.config, &f.container);
        await(&f, f.answers == 1); /* crun has exited */
        await(&f, cgroups(&f) == 0);
        await(&f, count_processes(&f) == 1); /* the kernel may take a moment to reap them */
        cri_exec_forget(f.loop, &f.config, &f.container);
        tear_down(&f);
}

static void a_cancelled_command_leaves_nothing([[maybe_unused]] void **state) {
        struct fixture f;
        struct cri_exec *exec;

        set_up(&f, "exec sleep 1000");
        exec = begin(&f, (const char *const[]) {"/bin/sh", "-c", "setsid sleep 998 & sleep 999", nullptr}, 0);
        await(&f, count_of_command(&f) >= 2);
        cri_exec_cancel(exec);
        await(&f, cgroups(&f) == 0);
        await(&f, count_processes(&f) == 1);
        assert_int_equal(f.answers, 0);
        /* before crun has done anything */
        cri_exec_cancel(begin(&f, (const char *const[]) {"/bin/true", nullptr}, 0));
        await(&f, cgroups(&f) == 0);
        tear_down(&f);
}

static void output_beyond_the_limit_is_discarded_and_the_command_continues([[maybe_unused]] void **state) {
        struct fixture f;

        set_up(&f, "exec sleep 1000");
        shell(&f, "yes | head -c 20000000; yes err | head -c 20000000 >&2; exit 3", 60 * ND_SECOND_US);
        expect_ok(nd_take_ptr(f.error));
        assert_int_equal(f.code, 3);
        assert_true(f.output.length > 15 << 20 && f.output.length + f.errors.length < 16 << 20);
        tear_down(&f);
}

static void many_commands_leak_nothing([[maybe_unused]] void **state) {
        enum { ROUNDS = 100, AT_ONCE = 4 };
        struct fixture f;
        size_t descriptors;
        uint64_t begin_us;

        set_up(&f, "exec sleep 1000");
        shell(&f, "true", 0);
        descriptors = resources_descriptors();
        begin_us = nd_clock_us();
        for (unsigned i = 0; i < ROUNDS; i++) {
                unsigned before = f.answers;

                for (unsigned k = 0; k < AT_ONCE; k++)
                        (void) begin(&f, (const char *const[]) {"/bin/true", nullptr}, 60 * ND_SECOND_US);
                await(&f, f.answers == before + AT_ONCE);
                expect_ok(nd_take_ptr(f.error));
        }
        print_message("# %d commands, each in %llu us\n", ROUNDS * AT_ONCE,
                      (unsigned long long) ((nd_clock_us() - begin_us) / (ROUNDS * AT_ONCE)));
        await(&f, cgroups(&f) == 0);
        await(&f, resources_descriptors() == descriptors);
        await(&f, count_processes(&f) == 1);
        tear_down(&f);
}

static void the_process_differs_from_the_containers_only_in_arguments([[maybe_unused]] void **state) {
        static const char config[] =
                "{\"process\":{\"terminal\":true,\"consoleSize\":{\"height\":1,\"width\":2},\"args\":[\"x\"],"
                "\"cwd\":\"/a\",\"oomScoreAdj\":-5,\"noNewPrivileges\":true},\"root\":{}}";
        nd_cleanup(nd_strings_done) struct nd_strings command = {};
        nd_autofree char *text = nullptr;
        size_t length;
        int oom;

        nd_strings_add(&command, "a b");
        nd_strings_add(&command, "");
        expect_ok(cri_exec_process(config, strlen(config), &command, false, &text, &length, &oom));
        assert_string_equal(text, "{\"cwd\":\"/a\",\"oomScoreAdj\":-5,\"noNewPrivileges\":true,\"args\":[\"a b\",\"\"]}");
        assert_int_equal(oom, -5);
        expect_error(cri_exec_process("{}", 2, &command, false, &text, &length, &oom), ND_DATA_LOSS, "no process");
        expect_error(cri_exec_process("{", 1, &command, false, &text, &length, &oom), ND_INVALID, "");
}

/* End to end with crun: an unprivileged user reopens /dev/stdout; log and exit status. */
static void log_and_exit_status_of_a_crun_container_are_recorded([[maybe_unused]] void **state) {
        nd_autofree char *log = nullptr, *path = nullptr;
        struct fixture f;

        set_up(&f, "echo one >/dev/stdout; echo two >/dev/stderr; exit 5");
        await(&f, f.exited);
        assert_int_equal(f.end.code, 5);
        path = nd_format("%s/0.log", f.root);
        expect_ok(nd_file_read(AT_FDCWD, path, 4096, &log, nullptr));
        expect_contains(log, "Z stdout F one\n");
        expect_contains(log, "Z stderr F two\n");
        tear_down(&f);
}

static void the_runtime_s_messages_say_why_a_command_did_not_start([[maybe_unused]] void **state) {
        static const struct {
                const char *message;
                int code;
        } cases[] = {
                {"execute in container 'x': executable file `nosuch` not found in $PATH: No such file or directory", 127},
                {"execute in container 'x': executable file `/no/such` not found: No such file or directory", 127},
                {"exec failed: unable to start container process: exec: \"nosuch\": executable file not found in $PATH", 127},
                {"unable to start container process: exec: \"/no\": stat /no: no such file or directory", 127},
                {"execute in container 'x': exec container process `/script`: No such file or directory", 127},
                {"execute in container 'x': the path `/etc/passwd` exists but it is not executable: Permission denied", 126},
                {"execute in container 'x': the path `/etc` is not a regular file: Operation not permitted", 126},
                {"unable to start container process: exec: \"/etc\": permission denied", 126},
                {"execute in container 'x': exec container process `/etc`: Permission denied", 126},
                {"execute in container 'x': the container is not running", 0},
                {"chdir to `/gone`: No such file or directory", 0},
                {"", 0},
        };

        for (size_t i = 0; i < nd_count_of(cases); i++)
                assert_int_equal(cri_exec_start_code(cases[i].message), cases[i].code);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_runtime_s_messages_say_why_a_command_did_not_start),
                cmocka_unit_test(the_process_differs_from_the_containers_only_in_arguments),
                cmocka_unit_test(log_and_exit_status_of_a_crun_container_are_recorded),
                cmocka_unit_test(exec_returns_output_and_exit_code),
                cmocka_unit_test(a_command_has_the_user_and_environment_of_the_container),
                cmocka_unit_test(a_missing_executable_fails_the_call),
                cmocka_unit_test(exec_in_a_container_that_just_died_fails_with_precondition),
                cmocka_unit_test(a_timeout_kills_the_command_and_its_descendants),
                cmocka_unit_test(a_server_that_a_hook_started_lives_on_in_the_container),
                cmocka_unit_test(a_command_of_an_earlier_daemon_is_killed),
                cmocka_unit_test(a_cancelled_command_leaves_nothing),
                cmocka_unit_test(output_beyond_the_limit_is_discarded_and_the_command_continues),
                cmocka_unit_test(many_commands_leak_nothing),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
