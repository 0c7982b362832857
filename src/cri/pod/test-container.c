/* SPDX-License-Identifier: Apache-2.0 */
/* test-container.c - containers from creation to removal; see <unit/cri-node.h>, and
 * test-container-stop.c for their exit */
#include <unit/expect.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <unit/cri-node.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/bundle/bundle.h"
#include "cri/core/paths.h"
#include "cri/core/record-format.h"
#include "sys/cgroup.h"
#include "sys/file.h"

/* A cancelled worker keeps two descriptors until the loop has reaped it, and the kernel may take a
 * moment to end it. */
static void expect_descriptors(struct cri_node *f, size_t descriptors) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        while (resources_descriptors() > descriptors && nd_clock_us() < end)
                assert_true(sd_event_run(f->parts.loop, 100 * ND_MS_US) >= 0);
        assert_int_equal(resources_descriptors(), descriptors);
        assert_int_equal(resources_children(), 0);
}

/* Creates, starts, waits for the exit, and returns the log; each line starts with time and
 * stream. */
static char *run_to_end(struct cri_node *f, struct cri_container_request *request) {
        nd_autofree char *path = nullptr;
        struct cri_container *container;

        scratch_text(f->root, "logs/0.log", "");
        expect_ok(cri_node_create(f, request));
        container = f->container;
        assert_int_equal(container->state, CONTAINER_CREATED);
        expect_ok(cri_node_start(f, container));
        cri_node_wait_for_exit(f, container);
        return scratch_read(f->root, "logs/0.log");
}

/* ---- tests ---- */

static void see_a_container(bool mapped) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *log = nullptr, *written = nullptr, *directory = nullptr;
        struct cri_container *container;
        size_t descriptors;
        struct stat st;

        cri_node_make(f);
        cri_node_run_pod(f, mapped, NAMESPACE_CONTAINER);
        descriptors = resources_descriptors();
        request = cri_node_request(f, ARGUMENTS("id", "owner", "/bin/program", "owner", "/", "write", "/new", "x", "line",
                                                "/proc/self/status", "Cap", "line", "/proc/self/status", "NoNewPrivs", "line",
                                                "/proc/self/status", "Seccomp:", "cat", "/proc/self/uid_map", "env", "PATH",
                                                "env", "HOME", "env", "ANSWER", "cwd", "cat", "/etc/resolv.conf", "owner",
                                                "/dev/null", "owner", "/dev/shm", "write", "/dev/shm/x", "y", "write",
                                                "/sys/x", "y", "cat", "/proc/1/comm", "exit", "3"));
        nd_vector_push(&request.environment, ((struct cri_pair) {nd_strdup("ANSWER"), nd_strdup("42")}));
        free(request.working_directory);
        request.working_directory = nd_strdup("/made/here");
        request.has_user = true;
        request.user = 0;
        request.seccomp.kind = PROFILE_DEFAULT;
        log = run_to_end(f, &request);
        container = f->container;
        assert_int_equal(container->exit_code, 3);
        assert_string_equal(container->reason, "Error");
        expect_contains(log, " F 0:0 0\n");
        expect_contains(log, "/bin/program 0:0 755");
        expect_contains(log, " / 0:0 755");
        expect_contains(log, "/new written");
        expect_contains(log, "CapInh:\t0000000000000000");
        expect_contains(log, "CapBnd:\t00000000a80425fb");
        expect_contains(log, "CapAmb:\t0000000000000000");
        expect_contains(log, "NoNewPrivs:\t0");
        expect_contains(log, "Seccomp:\t2");
        expect_contains(log, mapped ? " 0    1048576      65536" : " 0          0 4294967295");
        expect_contains(log, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        expect_contains(log, "HOME=/root");
        expect_contains(log, "ANSWER=42");
        expect_contains(log, "cwd /made/here");
        expect_contains(log, "/dev/shm/x written");
        expect_contains(log, "/sys/x: Read-only file system");
        expect_contains(log, " F program\n");

        directory = cri_path_of_container(&f->parts.config, container);
        written = nd_format("%s/upper/new", directory);
        assert_int_equal(stat(written, &st), 0);
        assert_int_equal(st.st_uid, mapped ? CRI_NODE_HOST : 0);
        expect_ok(cri_node_remove(f, container));
        assert_null(f->container);
        assert_int_equal(access(directory, F_OK), -1);
        assert_int_equal(f->sandbox->containers.count, 0);
        expect_descriptors(f, descriptors);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void a_container_without_a_user_namespace_sees_the_expected_system([[maybe_unused]] void **state) {
        cri_node_needs_oci_runtime();
        see_a_container(false);
}

static void a_container_in_a_user_namespace_sees_the_same_with_mapped_ids([[maybe_unused]] void **state) {
        cri_node_needs_oci_runtime();
        see_a_container(true);
}

static void a_missing_program_fails_with_the_message_of_crun([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *containers = nullptr;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("say", "x"));
        free(request.command.items[0]);
        request.command.items[0] = nd_strdup("/no/such/program");
        expect_error(cri_node_create(f, &request), ND_INTERNAL, "/no/such/program");
        assert_int_equal(f->sandbox->containers.count, 0);
        containers = nd_format("state/pods/%s/containers", f->sandbox->id);
        assert_int_equal(scratch_entries(f->root, containers), 0);
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void missing_images_and_volumes_fail_before_anything_is_created([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("say", "x"));
        free(request.image);
        request.image = nd_strdup("example.org/other:1");
        expect_error(cri_node_create(f, &request), ND_NOT_FOUND, "image 'example.org/other:1' not found");

        request = cri_node_request(f, ARGUMENTS("say", "x"));
        nd_vector_push(&request.mounts, ((struct cri_mount_request) {.container_path = nd_strdup("/data"),
                                                                     .host_path = nd_strdup("/no/such/path"),
                                                                     .image = nd_strdup(""),
                                                                     .image_subpath = nd_strdup("")}));
        expect_error(cri_node_create(f, &request), ND_NOT_FOUND,
                     "volume '/no/such/path' at '/data': host path '/no/such/path' does not exist on this node");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void volumes_are_idmapped_both_ways([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *volume = nullptr, *tmpfs = nullptr, *written = nullptr, *log = nullptr, *link = nullptr,
                         *file = nullptr;
        struct nd_userns_map map = {.outside = CRI_NODE_HOST, .count = CRI_NODE_COUNT};
        struct stat st;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        volume = nd_format("%s/volume", f->root);
        link = nd_format("%s/link", f->root);
        file = nd_format("%s/file", f->root);
        scratch_mkdir(f->root, "volume/tmpfs");
        scratch_text(f->root, "volume/hello", "from the host\n");
        scratch_text(f->root, "file", "a file\n");
        assert_int_equal(symlink(volume, link), 0);
        tmpfs = nd_format("%s/volume/tmpfs", f->root);
        assert_int_equal(mount("tmpfs", tmpfs, "tmpfs", 0, nullptr), 0);
        scratch_text(f->root, "volume/tmpfs/below", "in a submount\n");
        request = cri_node_request(f, ARGUMENTS("owner", "/data/hello", "cat", "/data/hello", "write", "/data/new", "x",
                                                "owner", "/data/tmpfs/below", "write", "/read-only/new", "x", "cat",
                                                "/etc/file", "owner", "/etc/file"));
        request.has_user = true;
        nd_vector_push(&request.mounts, ((struct cri_mount_request) {.container_path = nd_strdup("/data"),
                                                                     .host_path = nd_strdup(link),
                                                                     .image = nd_strdup(""),
                                                                     .image_subpath = nd_strdup(""),
                                                                     .idmapped = true,
                                                                     .uids = map,
                                                                     .gids = map}));
        nd_vector_push(&request.mounts, ((struct cri_mount_request) {.container_path = nd_strdup("/read-only"),
                                                                     .host_path = nd_strdup(volume),
                                                                     .image = nd_strdup(""),
                                                                     .image_subpath = nd_strdup(""),
                                                                     .idmapped = true,
                                                                     .read_only = true,
                                                                     .uids = map,
                                                                     .gids = map}));
        nd_vector_push(&request.mounts, ((struct cri_mount_request) {.container_path = nd_strdup("/etc/file"),
                                                                     .host_path = nd_strdup(file),
                                                                     .image = nd_strdup(""),
                                                                     .image_subpath = nd_strdup(""),
                                                                     .idmapped = true,
                                                                     .uids = map,
                                                                     .gids = map}));
        log = run_to_end(f, &request);
        expect_contains(log, "/data/hello 0:0");
        expect_contains(log, "from the host");
        expect_contains(log, "/data/new written");
        expect_contains(log, "/data/tmpfs/below 0:0");
        expect_contains(log, "/read-only/new: Read-only file system");
        expect_contains(log, "/etc/file 0:0");
        written = nd_format("%s/volume/new", f->root);
        assert_int_equal(stat(written, &st), 0);
        assert_int_equal(st.st_uid, 0); /* unmapped, as the kubelet sees it */
        cri_node_remove_pod(f);
        assert_int_equal(umount2(tmpfs, MNT_DETACH), 0);
        cri_node_done(f);
}

static void containers_of_a_pod_may_share_a_pid_namespace([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *log = nullptr;

        cri_node_needs_oci_runtime();
        if (system("command -v catatonit >/dev/null") != 0)
                skip_because("catatonit is not installed");
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_POD);
        assert_non_null(f->sandbox->init);
        assert_int_equal(f->sandbox->init->state, CONTAINER_RUNNING);
        request = cri_node_request(f, ARGUMENTS("cat", "/proc/1/comm"));
        request.has_user = true;
        log = run_to_end(f, &request);
        expect_contains(log, " F init\n");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static int on_ready([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct cri_node *f = userdata;

        cri_container_start(&f->parts, f->container, cri_node_on_container, f, nullptr);
        return 0;
}

/* The kubelet's call and the end of the sync arrive in one iteration of the loop. */
static void a_start_that_meets_the_end_of_the_sync_happens_once([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        for (int i = 0; i < 5; i++) {
                struct cri_container_request request = cri_node_request(f, ARGUMENTS("sleep", "60"));
                sd_event_source *source = nullptr;
                int pair[2];

                assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
                expect_ok(cri_node_create(f, &request));
                (void) usleep(100000); /* the worker has exited, and the loop has not seen it yet */
                (void) close(pair[1]);
                assert_true(sd_event_add_io(f->parts.loop, &source, pair[0], EPOLLHUP, on_ready, f) >= 0);
                assert_true(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
                assert_true(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0);
                expect_ok(cri_node_wait(f));
                assert_int_equal(f->container->state, CONTAINER_RUNNING);
                sd_event_source_disable_unref(source);
                (void) close(pair[0]);
                expect_ok(cri_node_remove(f, f->container));
        }
        cri_node_remove_pod(f);
        cri_node_done(f);
}

/* At any moment: the caller goes away after so many iterations of the loop. */
static void an_abandoned_creation_leaves_nothing([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        nd_autofree char *containers = nullptr;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        containers = nd_format("state/pods/%s/containers", f->sandbox->id);
        for (int turns = 0; turns < 6; turns++) {
                struct cri_container_request request = cri_node_request(f, ARGUMENTS("sleep", "60"));
                struct cri_container_operation *operation = nullptr;
                uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

                cri_container_create(&f->parts, f->sandbox, &request, "bytes", 5, cri_node_on_container, f, &operation);
                for (int i = 0; i < turns && !f->called; i++)
                        assert_true(sd_event_run(f->parts.loop, ND_SECOND_US) >= 0);
                if (f->called) { /* the creation was faster */
                        expect_ok(cri_node_wait(f));
                        expect_ok(cri_node_remove(f, f->container));
                        continue;
                }
                cri_container_abandon(operation);
                while (f->sandbox->containers.count > 0) {
                        assert_true(nd_clock_us() < end);
                        assert_true(sd_event_run(f->parts.loop, ND_SECOND_US) >= 0);
                }
                assert_false(f->called);
                assert_true(!scratch_has(f->root, containers) || scratch_entries(f->root, containers) == 0);
                assert_true(!scratch_has(f->root, "run/containers") || scratch_entries(f->root, "run/containers") == 0);
        }
        cri_node_remove_pod(f);
        cri_node_done(f);
}

/* ---- OCI runtimes that fail or hang, a killed daemon ---- */

/* Another daemon creates a container, and is killed once the OCI runtime has created a file named
 * "now". */
static void be_killed_while_creating(struct cri_node *f) {
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct cri_container_request request = cri_node_request(f, ARGUMENTS("sleep", "60"));

                if (sd_event_new(&f->parts.loop) < 0)
                        _exit(1);
                cri_container_create(&f->parts, f->sandbox, &request, "bytes", 5, cri_node_on_container, f, nullptr);
                while (!scratch_has(f->root, "now") && nd_clock_us() < end)
                        (void) sd_event_run(f->parts.loop, 10 * ND_MS_US);
                (void) raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_true(scratch_has(f->root, "now"));
}

/* As the next daemon does, except for the request, which is not protobuf here. */
static struct cri_container *load_container(struct cri_node *f) {
        nd_autofree char *path = nd_format("%s/state/pods/%s/containers", f->root, f->sandbox->id);
        nd_cleanup(nd_strings_done) struct nd_strings ids = {};
        nd_autofree char *record = nullptr, *json = nullptr;
        struct cri_container *container = nd_new(struct cri_container);
        size_t length;

        expect_ok(nd_dir_list(AT_FDCWD, path, 2, &ids));
        assert_int_equal(ids.count, 1);
        memcpy(container->id, ids.items[0], POD_ID + 1);
        container->sandbox = f->sandbox;
        record = nd_format("%s/%s/container.json", path, container->id);
        expect_ok(nd_file_read(AT_FDCWD, record, RECORD_CEILING, &json, &length));
        expect_ok(cri_record_parse_container(json, length, container));
        cri_pod_table_add_container(&f->parts.pods, container);
        return container;
}

static bool has_processes(const char *cgroup) {
        nd_autofree char *text = nd_malloc(ND_CGROUP_FILE);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int fd = -EBADF;

        error = nd_cgroup_open(cgroup, &fd);
        return !error && nd_cgroup_read(fd, "cgroup.events", text) && strstr(text, "populated 1");
}

static void undo_what_hangs(const char *create) {
        struct cri_node fixture, *f = &fixture;
        nd_autofree char *home = nullptr, *own = nullptr, *crun = nullptr, *directory = nullptr;
        struct cri_container *container;
        int fd;

        cri_node_make(f);
        cri_node_use_oci_runtime(f, "create", create);
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        be_killed_while_creating(f);
        container = load_container(f);
        assert_int_equal(container->state, CONTAINER_NEW);
        if (*container->monitor_cgroup == '\0') {
                print_message("no writable cgroup v2: monitors cannot be found\n");
                cri_node_remove_pod(f);
                cri_node_done(f);
                return;
        }
        home = nd_strdup(container->monitor_cgroup);
        directory = cri_path_of_container(&f->parts.config, container);
        expect_ok(cri_bundle_cgroup(directory, &own));
        assert_non_null(own);
        crun = nd_format("run/crun/%s", container->id);
        assert_true(has_processes(home));
        expect_ok(cri_node_remove(f, container));
        expect_error(nd_cgroup_open(home, &fd), ND_NOT_FOUND, "monitors");
        expect_error(nd_cgroup_open(own, &fd), ND_NOT_FOUND, "open the cgroup");
        assert_false(scratch_has(f->root, crun));
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void an_oci_runtime_that_hangs_is_killed_by_the_next_daemon([[maybe_unused]] void **state) {
        cri_node_needs_oci_runtime();
        undo_what_hangs(": > \"${0%/*}/now\"; sleep 3600");
}

static void the_state_of_an_oci_runtime_that_hangs_is_removed([[maybe_unused]] void **state) {
        cri_node_needs_oci_runtime();
        undo_what_hangs("crun \"$@\"; : > \"${0%/*}/now\"; sleep 3600");
}

static void a_start_that_fails_after_the_process_runs_counts_as_started([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *log = nullptr;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_use_oci_runtime(f, "start", "crun \"$@\"; echo broken >&2; exit 94");
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("cwd", "exit", "16"));
        log = run_to_end(f, &request);
        expect_contains(log, " F cwd /");
        assert_int_equal(f->container->exit_code, 16);
        assert_string_equal(f->container->reason, "Error");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void a_start_that_fails_before_the_process_runs_is_a_start_error([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_use_oci_runtime(f, "start", "echo broken >&2; exit 94");
        cri_node_run_pod(f, true, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("exit", "16"));
        expect_ok(cri_node_create(f, &request));
        expect_error(cri_node_start(f, f->container), ND_INTERNAL, "start the container: crun ended with code 94: broken");
        cri_node_wait_for_exit(f, f->container);
        assert_int_equal(cri_container_reported_state(f->container),
                         CONTAINER_CREATED); /* never RUNNING, not even until the sync is done */
        assert_int_equal(f->container->exit_code, 128);
        assert_string_equal(f->container->reason, "StartError");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

static void a_privileged_container_has_the_privileges_of_the_host([[maybe_unused]] void **state) {
        struct cri_node fixture, *f = &fixture;
        struct cri_container_request request;
        nd_autofree char *log = nullptr, *status = nullptr, *line = nullptr;
        const char *bounding;

        cri_node_needs_oci_runtime();
        cri_node_make(f);
        cri_node_run_pod(f, false, NAMESPACE_CONTAINER);
        request = cri_node_request(f, ARGUMENTS("line", "/proc/self/status", "Cap", "line", "/proc/self/status", "NoNewPrivs",
                                                "line", "/proc/self/status", "Seccomp:", "write",
                                                "/sys/fs/cgroup/no-such-file", "x", "owner", "/dev/full"));
        request.privileged = request.has_user = request.no_new_privileges = true;
        request.seccomp.kind = PROFILE_DEFAULT;
        nd_strings_add(&request.masked_paths, "/proc/self/status");
        log = run_to_end(f, &request);
        expect_ok(nd_file_read_kernel("/proc/self/status", 64 << 10, &status));
        bounding = strstr(status, "CapBnd:");
        line = nd_strndup(bounding, strcspn(bounding, "\n"));
        expect_contains(log, line);
        expect_contains(log, "NoNewPrivs:\t0");
        expect_contains(log, "Seccomp:\t0");
        expect_contains(log, "/dev/full 0:0 666");
        cri_node_remove_pod(f);
        cri_node_done(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_container_without_a_user_namespace_sees_the_expected_system),
                cmocka_unit_test(a_container_in_a_user_namespace_sees_the_same_with_mapped_ids),
                cmocka_unit_test(a_missing_program_fails_with_the_message_of_crun),
                cmocka_unit_test(missing_images_and_volumes_fail_before_anything_is_created),
                cmocka_unit_test(volumes_are_idmapped_both_ways),
                cmocka_unit_test(containers_of_a_pod_may_share_a_pid_namespace),
                cmocka_unit_test(a_start_that_meets_the_end_of_the_sync_happens_once),
                cmocka_unit_test(an_abandoned_creation_leaves_nothing),
                cmocka_unit_test(an_oci_runtime_that_hangs_is_killed_by_the_next_daemon),
                cmocka_unit_test(the_state_of_an_oci_runtime_that_hangs_is_removed),
                cmocka_unit_test(a_start_that_fails_after_the_process_runs_counts_as_started),
                cmocka_unit_test(a_start_that_fails_before_the_process_runs_is_a_start_error),
                cmocka_unit_test(a_privileged_container_has_the_privileges_of_the_host),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
