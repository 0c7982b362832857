/* SPDX-License-Identifier: Apache-2.0 */
/* test-container.c - containers from creation to removal, with the real crun, the real monitor and real namespaces
 *
 * The image is one layer with one static program (tests/unit/container-program.c), which does what its arguments say. */
#include <unit/expect.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <unit/offers.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/container.h"
#include "cri/runtime.h"
#include "cri/network.h"
#include "cri/paths.h"
#include "cri/pins.h"
#include "cri/record-format.h"
#include "cri/record.h"
#include "cri/resources.h"
#include "cri/sandbox.h"
#include "cri/workshop.h"
#include "sys/cgroup.h"
#include "sys/file.h"

enum { HOST = 1 << 20, COUNT = 65536 };

static const struct offer_plan image = {.number = 7, .own = 1, .names = {"example.org/test:1"}};

struct fixture {
        char *root;
        struct runtime daemon;
        bool called;
        struct nd_error *error;
        struct sandbox *sandbox;
        struct container *container;
};

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

/* ---- a node ---- */

static void copy_program(const char *to) {
        nd_autofree char *command = nd_format("install -D -m 0755 '%s' '%s'", getenv("CONTAINER_PROGRAM"), to);

        assert_int_equal(system(command), 0);
}

/* The offered layer has one file; ours needs a program and users. */
static void put_image(struct fixture *f) {
        const struct nd_image *found = nullptr;
        struct nd_digest chain;
        char hex[ND_DIGEST_HEX];
        nd_autofree char *tree = nullptr, *program = nullptr, *file = nullptr;

        offers_hurry(true);
        expect_ok(offer_commit(f->daemon.images, &image));
        offers_hurry(false);
        expect_ok(nd_image_store_find(f->daemon.images, "example.org/test:1", &found));
        nd_image_chains(found, &chain);
        tree = nd_format("%s/images/layers/%s/fs", f->root, nd_digest_hex(&chain, hex));
        program = nd_format("%s/bin/program", tree);
        copy_program(program);
        scratch_mkdir(tree, "etc");
        scratch_text(tree, "etc/passwd", "root:x:0:0::/root:/\nseven:x:1007:1008::/:/\n");
        scratch_text(tree, "etc/group", "root:x:0:\nextra:x:50000:seven\n");
        file = nd_format("chmod 755 '%s' '%s/bin' '%s/etc'; chmod 644 '%s'/etc/*", tree, tree, tree, tree);
        assert_int_equal(system(file), 0);
}

static void set_up(struct fixture *f) {
        struct cri_config *config = &f->daemon.config;
        nd_autofree char *images = nullptr, *layers = nullptr;

        *f = (struct fixture) {.root = scratch_make()};
        assert_int_equal(chmod(f->root, 0711), 0);
        scratch_mkdir(f->root, "net.d");
        scratch_mkdir(f->root, "state");
        scratch_mkdir(f->root, "images");
        scratch_mkdir(f->root, "logs");
        cri_config_init(config);
        replace(&config->state, nd_format("%s/state", f->root));
        replace(&config->run, nd_format("%s/run", f->root));
        replace(&config->netns, nd_format("%s/netns", f->root));
        replace(&config->cni_config, nd_format("%s/net.d", f->root));
        replace(&config->monitor, nd_strdup(getenv("NODENS_MON")));
        config->systemd_cgroups = false;
        assert_true(sd_event_new(&f->daemon.loop) >= 0);
        expect_ok(pins_open(config, &f->daemon.pins));
        expect_ok(record_book_open(config, &f->daemon.records));
        f->daemon.network = network_new(f->daemon.loop, config);
        images = nd_format("%s/images", f->root);
        expect_ok(nd_image_store_open(images, &f->daemon.images));
        layers = nd_format("%s/layers", images);
        expect_ok(workshop_open(config, layers, &f->daemon.workshop));
        put_image(f);
}

static void tear_down(struct fixture *f) {
        nd_autofree char *mnt = nd_format("%s/run/pins/mnt", f->root), *pins = nd_format("%s/run/pins", f->root);

        pods_done(&f->daemon.pods);
        network_free(f->daemon.network);
        record_book_free(f->daemon.records);
        pins_free(f->daemon.pins);
        workshop_free(f->daemon.workshop);
        nd_image_store_free(f->daemon.images);
        sd_event_unref(f->daemon.loop);
        cri_config_done(&f->daemon.config);
        assert_int_equal(umount2(mnt, MNT_DETACH), 0);
        assert_int_equal(umount2(pins, MNT_DETACH), 0);
        scratch_remove(&f->root);
}

/* To be said before anything is made: skipping jumps past the cleanup. */
static void needs_engine(void) {
        if (geteuid() != 0 || !getenv("CONTAINER_PROGRAM") || !getenv("NODENS_MON"))
                skip_because("containers need privilege, and meson tells where the programs are");
        if (system("command -v crun >/dev/null") != 0)
                skip_because("there is no crun");
}

/* ---- operations, waited for ---- */

static struct nd_error *wait_for(struct fixture *f) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        while (!f->called) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->daemon.loop, ND_SECOND_US) >= 0);
        }
        f->called = false;
        return nd_take_ptr(f->error);
}

static void on_sandbox(struct nd_error *error, struct sandbox *sandbox, void *userdata) {
        struct fixture *f = userdata;

        f->called = true;
        f->error = error;
        f->sandbox = sandbox;
}

static void on_container(struct nd_error *error, struct container *container, void *userdata) {
        struct fixture *f = userdata;

        f->called = true;
        f->error = error;
        f->container = container;
}

static void run_pod(struct fixture *f, bool mapped, enum namespace_mode pid) {
        struct sandbox_request request = {.name = nd_strdup("web"),
                                          .uid = nd_strdup("u-1"),
                                          .namespace = nd_strdup("default"),
                                          .hostname = nd_strdup(""),
                                          .log_directory = nd_format("%s/logs", f->root),
                                          .cgroup_parent = nd_format("/%s", strrchr(f->root, '/') + 1),
                                          .runtime_handler = nd_strdup(""),
                                          .network = NAMESPACE_NODE,
                                          .pid = pid,
                                          .user_namespace = mapped,
                                          .uids = {.outside = mapped ? HOST : 0, .count = mapped ? COUNT : 0},
                                          .gids = {.outside = mapped ? HOST : 0, .count = mapped ? COUNT : 0}};

        sandbox_run(&f->daemon, &request, "bytes", 5, on_sandbox, f, nullptr);
        expect_ok(wait_for(f));
}

static void remove_pod(struct fixture *f) {
        nd_autofree char *cgroup = nd_format("/sys/fs/cgroup/%s", strrchr(f->root, '/') + 1);

        sandbox_stop(&f->daemon, f->sandbox, on_sandbox, f, nullptr);
        expect_ok(wait_for(f));
        sandbox_remove(&f->daemon, f->sandbox, on_sandbox, f, nullptr);
        expect_ok(wait_for(f));
        if (rmdir(cgroup) < 0 && errno != ENOENT)
                fail_msg("%s: %s", cgroup, strerror(errno));
}

static struct container_request request_of(const struct fixture *f, const char *const *arguments) {
        const struct sandbox_request *pod = &f->sandbox->request;
        struct container_request request = {
                .name = nd_strdup("c"),
                .image = nd_strdup("example.org/test:1"),
                .image_by_user = nd_strdup("example.org/test:1"),
                .working_directory = nd_strdup(""),
                .log_path = nd_strdup("0.log"),
                .resources = {.cpuset_cpus = nd_strdup(""), .cpuset_mems = nd_strdup("")},
                .pid_target = nd_strdup(""),
                .network = pod->network,
                .pid = pod->pid,
                .user_namespace = pod->user_namespace,
                .uids = pod->uids,
                .gids = pod->gids,
                .user_name = nd_strdup(""),
                .seccomp = {.kind = PROFILE_UNSET, .localhost = nd_strdup("")},
                .apparmor = {.kind = PROFILE_UNSET, .localhost = nd_strdup("")},
        };

        nd_strings_add(&request.command, "/bin/program");
        for (; *arguments; arguments++)
                nd_strings_add(&request.arguments, *arguments);
        return request;
}

#define ARGUMENTS(...) ((const char *const[]) {__VA_ARGS__, nullptr})

static struct nd_error *create(struct fixture *f, struct container_request *request) {
        container_create(&f->daemon, f->sandbox, request, "bytes", 5, on_container, f, nullptr);
        return wait_for(f);
}

static struct nd_error *start(struct fixture *f, struct container *container) {
        container_start(&f->daemon, container, on_container, f, nullptr);
        return wait_for(f);
}

static struct nd_error *stop(struct fixture *f, struct container *container, int64_t timeout_s) {
        container_stop(&f->daemon, container, timeout_s, on_container, f, nullptr);
        return wait_for(f);
}

static struct nd_error *remove_it(struct fixture *f, struct container *container) {
        container_remove(&f->daemon, container, on_container, f, nullptr);
        return wait_for(f);
}

static void wait_for_end(struct fixture *f, const struct container *container) {
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;

        while (container->state != CONTAINER_EXITED) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->daemon.loop, 100 * ND_MS_US) >= 0);
        }
}

/* A cancelled worker keeps two descriptors until the loop has reaped it, and the kernel may take its time to end it. */
static void expect_descriptors(struct fixture *f, size_t descriptors) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        while (resources_descriptors() > descriptors && nd_clock_us() < end)
                assert_true(sd_event_run(f->daemon.loop, 100 * ND_MS_US) >= 0);
        assert_int_equal(resources_descriptors(), descriptors);
        assert_int_equal(resources_children(), 0);
}

/* Creates, starts, waits for the end, and gives the log; its lines say the time and the stream first. */
static char *run_to_end(struct fixture *f, struct container_request *request) {
        nd_autofree char *path = nullptr;
        struct container *container;

        scratch_text(f->root, "logs/0.log", "");
        expect_ok(create(f, request));
        container = f->container;
        assert_int_equal(container->state, CONTAINER_CREATED);
        expect_ok(start(f, container));
        wait_for_end(f, container);
        return scratch_read(f->root, "logs/0.log");
}

/* ---- tests ---- */

static void see_a_container(bool mapped) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *log = nullptr, *written = nullptr, *directory = nullptr;
        struct container *container;
        size_t descriptors;
        struct stat st;

        set_up(f);
        run_pod(f, mapped, NAMESPACE_CONTAINER);
        descriptors = resources_descriptors();
        request = request_of(f, ARGUMENTS("id", "owner", "/bin/program", "owner", "/", "write", "/new", "x", "line",
                                          "/proc/self/status", "Cap", "line", "/proc/self/status", "NoNewPrivs", "line",
                                          "/proc/self/status", "Seccomp:", "cat", "/proc/self/uid_map", "env", "PATH", "env",
                                          "HOME", "env", "ANSWER", "cwd", "cat", "/etc/resolv.conf", "owner", "/dev/null",
                                          "owner", "/dev/shm", "write", "/dev/shm/x", "y", "write", "/sys/x", "y", "cat",
                                          "/proc/1/comm", "exit", "3"));
        nd_vector_push(&request.environment, ((struct pair) {nd_strdup("ANSWER"), nd_strdup("42")}));
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

        directory = path_of_container(&f->daemon.config, container);
        written = nd_format("%s/upper/new", directory);
        assert_int_equal(stat(written, &st), 0);
        assert_int_equal(st.st_uid, mapped ? HOST : 0);
        expect_ok(remove_it(f, container));
        assert_null(f->container);
        assert_int_equal(access(directory, F_OK), -1);
        assert_int_equal(f->sandbox->containers.count, 0);
        expect_descriptors(f, descriptors);
        remove_pod(f);
        tear_down(f);
}

static void a_container_with_the_hosts_users_sees_what_it_should([[maybe_unused]] void **state) {
        needs_engine();
        see_a_container(false);
}

static void a_container_in_a_user_namespace_sees_the_same_with_ids_of_its_own([[maybe_unused]] void **state) {
        needs_engine();
        see_a_container(true);
}

static void an_end_is_told_when_the_disk_knows_of_it([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("exit", "3"));
        expect_ok(create(f, &request));
        assert_int_equal(container_told_state(f->container), CONTAINER_CREATED);
        expect_ok(start(f, f->container));
        wait_for_end(f, f->container);
        assert_int_equal(container_told_state(f->container), CONTAINER_RUNNING); /* the worker has just been started */
        while (container_told_state(f->container) != CONTAINER_EXITED) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(f->daemon.loop, 100 * ND_MS_US) >= 0);
        }
        assert_int_equal(f->container->exit_code, 3);
        expect_ok(stop(f, f->container, 0));

        request = request_of(f, ARGUMENTS("sleep", "60"));
        expect_ok(create(f, &request));
        expect_ok(start(f, f->container));
        expect_ok(stop(f, f->container, 0)); /* who waits for the end waits for the disk too */
        assert_int_equal(container_told_state(f->container), CONTAINER_EXITED);
        remove_pod(f);
        tear_down(f);
}

static void the_stop_signal_comes_first_and_sigkill_after_it([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        struct container *container;
        uint64_t before;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("trap", "9", "say", "ready", "sleep", "60"));
        expect_ok(create(f, &request));
        container = f->container;
        expect_ok(start(f, container));
        assert_int_equal(container->state, CONTAINER_RUNNING);
        assert_true(container->pid > 0);
        for (nd_autofree char *log = nullptr; !log || !strstr(log, "ready");
             free(log), log = scratch_read(f->root, "logs/0.log"))
                (void) usleep(1000);
        expect_ok(stop(f, container, 30));
        assert_int_equal(container->exit_code, 9);
        expect_ok(stop(f, container, 30)); /* already */
        expect_error(start(f, container), ND_PRECONDITION, "has ended");
        expect_ok(remove_it(f, container));

        request = request_of(f, ARGUMENTS("sleep", "60")); /* pid 1 of its namespace: SIGTERM does nothing */
        expect_ok(create(f, &request));
        container = f->container;
        expect_ok(start(f, container));
        before = nd_clock_us();
        expect_ok(stop(f, container, 1));
        assert_true(nd_clock_us() - before >= ND_SECOND_US * 9 / 10);
        assert_int_equal(container->exit_code, 137);
        assert_string_equal(container->reason, "Error");
        remove_pod(f);
        tear_down(f);
}

static void a_program_that_is_not_there_is_told_in_cruns_words([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *containers = nullptr;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("say", "x"));
        free(request.command.items[0]);
        request.command.items[0] = nd_strdup("/no/such/program");
        expect_error(create(f, &request), ND_INTERNAL, "/no/such/program");
        assert_int_equal(f->sandbox->containers.count, 0);
        containers = nd_format("state/pods/%s/containers", f->sandbox->id);
        assert_int_equal(scratch_entries(f->root, containers), 0);
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
        remove_pod(f);
        tear_down(f);
}

static void what_the_node_lacks_is_said_before_anything_is_made([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("say", "x"));
        free(request.image);
        request.image = nd_strdup("example.org/other:1");
        expect_error(create(f, &request), ND_NOT_FOUND, "no image 'example.org/other:1'");

        request = request_of(f, ARGUMENTS("say", "x"));
        nd_vector_push(&request.mounts, ((struct mount_request) {.container_path = nd_strdup("/data"),
                                                                 .host_path = nd_strdup("/no/such/path"),
                                                                 .image = nd_strdup(""),
                                                                 .image_subpath = nd_strdup("")}));
        expect_error(create(f, &request), ND_NOT_FOUND,
                     "volume '/no/such/path' at '/data': host path '/no/such/path' does not exist on this node");
        remove_pod(f);
        tear_down(f);
}

static void volumes_are_idmapped_both_ways([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *volume = nullptr, *tmpfs = nullptr, *written = nullptr, *log = nullptr, *link = nullptr,
                         *file = nullptr;
        struct nd_id_map map = {.outside = HOST, .count = COUNT};
        struct stat st;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
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
        request = request_of(f, ARGUMENTS("owner", "/data/hello", "cat", "/data/hello", "write", "/data/new", "x", "owner",
                                          "/data/tmpfs/below", "write", "/read-only/new", "x", "cat", "/etc/file", "owner",
                                          "/etc/file"));
        request.has_user = true;
        nd_vector_push(&request.mounts, ((struct mount_request) {.container_path = nd_strdup("/data"),
                                                                 .host_path = nd_strdup(link),
                                                                 .image = nd_strdup(""),
                                                                 .image_subpath = nd_strdup(""),
                                                                 .idmapped = true,
                                                                 .uids = map,
                                                                 .gids = map}));
        nd_vector_push(&request.mounts, ((struct mount_request) {.container_path = nd_strdup("/read-only"),
                                                                 .host_path = nd_strdup(volume),
                                                                 .image = nd_strdup(""),
                                                                 .image_subpath = nd_strdup(""),
                                                                 .idmapped = true,
                                                                 .read_only = true,
                                                                 .uids = map,
                                                                 .gids = map}));
        nd_vector_push(&request.mounts, ((struct mount_request) {.container_path = nd_strdup("/etc/file"),
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
        assert_int_equal(st.st_uid, 0); /* the kubelet's view: unmapped */
        remove_pod(f);
        assert_int_equal(umount2(tmpfs, MNT_DETACH), 0);
        tear_down(f);
}

static void containers_of_a_pod_may_share_its_pids([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *log = nullptr;

        needs_engine();
        if (system("command -v catatonit >/dev/null") != 0)
                skip_because("there is no catatonit");
        set_up(f);
        run_pod(f, true, NAMESPACE_POD);
        assert_non_null(f->sandbox->init);
        assert_int_equal(f->sandbox->init->state, CONTAINER_RUNNING);
        request = request_of(f, ARGUMENTS("cat", "/proc/1/comm"));
        request.has_user = true;
        log = run_to_end(f, &request);
        expect_contains(log, " F init\n");
        remove_pod(f);
        tear_down(f);
}

struct answer {
        bool called;
        enum nd_code code;
};

static void on_answer(struct nd_error *error, [[maybe_unused]] struct container *container, void *userdata) {
        struct answer *answer = userdata;

        answer->called = true;
        answer->code = nd_error_code(error);
        nd_error_free(error);
}

static void wait_for_answers(struct fixture *f, const struct answer *answers, size_t count) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        for (size_t i = 0; i < count; i++)
                while (!answers[i].called) {
                        assert_true(nd_clock_us() < end);
                        assert_true(sd_event_run(f->daemon.loop, ND_SECOND_US) >= 0);
                }
}

static void who_waits_for_a_container_that_is_removed_is_told([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        struct answer answers[5] = {};

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("sleep", "60"));
        expect_ok(create(f, &request));
        expect_ok(start(f, f->container));
        container_stop(&f->daemon, f->container, 3600, on_answer, &answers[0], nullptr);
        for (int i = 0; i < 10; i++)
                assert_true(sd_event_run(f->daemon.loop, ND_MS_US) >= 0);
        assert_false(answers[0].called);                                              /* pid 1 does not hear SIGTERM */
        container_stop(&f->daemon, f->container, 0, on_answer, &answers[1], nullptr); /* shortens the first one's hour */
        container_remove(&f->daemon, f->container, on_answer, &answers[2], nullptr);
        container_start(&f->daemon, f->container, on_answer, &answers[3], nullptr);
        container_remove(&f->daemon, f->container, on_answer, &answers[4], nullptr);
        assert_false(answers[1].called || answers[2].called || answers[3].called || answers[4].called);
        wait_for_answers(f, answers, nd_count_of(answers));
        assert_int_equal(answers[0].code, ND_OK);
        assert_int_equal(answers[1].code, ND_OK);
        assert_int_equal(answers[2].code, ND_OK);
        assert_int_equal(answers[3].code, ND_NOT_FOUND);
        assert_int_equal(answers[4].code, ND_OK);
        assert_int_equal(f->sandbox->containers.count, 0);
        remove_pod(f);
        tear_down(f);
}

static int on_ready([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct fixture *f = userdata;

        container_start(&f->daemon, f->container, on_container, f, nullptr);
        return 0;
}

/* The kubelet's call and the word of the disk come in one turn of the loop. */
static void a_start_that_meets_the_end_of_the_sync_happens_once([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        for (int i = 0; i < 5; i++) {
                struct container_request request = request_of(f, ARGUMENTS("sleep", "60"));
                sd_event_source *source = nullptr;
                int pair[2];

                assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
                expect_ok(create(f, &request));
                (void) usleep(100000); /* the worker has ended, and we have not looked yet */
                (void) close(pair[1]);
                assert_true(sd_event_add_io(f->daemon.loop, &source, pair[0], EPOLLHUP, on_ready, f) >= 0);
                assert_true(sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT) >= 0);
                assert_true(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) >= 0);
                expect_ok(wait_for(f));
                assert_int_equal(f->container->state, CONTAINER_RUNNING);
                sd_event_source_disable_unref(source);
                (void) close(pair[0]);
                expect_ok(remove_it(f, f->container));
        }
        remove_pod(f);
        tear_down(f);
}

/* At any moment: after so many turns of the loop the caller is gone. */
static void an_abandoned_creation_leaves_nothing([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        nd_autofree char *containers = nullptr;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        containers = nd_format("state/pods/%s/containers", f->sandbox->id);
        for (int turns = 0; turns < 6; turns++) {
                struct container_request request = request_of(f, ARGUMENTS("sleep", "60"));
                struct container_operation *operation = nullptr;
                uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

                container_create(&f->daemon, f->sandbox, &request, "bytes", 5, on_container, f, &operation);
                for (int i = 0; i < turns && !f->called; i++)
                        assert_true(sd_event_run(f->daemon.loop, ND_SECOND_US) >= 0);
                if (f->called) { /* it was quicker than we */
                        expect_ok(wait_for(f));
                        expect_ok(remove_it(f, f->container));
                        continue;
                }
                container_abandon(operation);
                while (f->sandbox->containers.count > 0) {
                        assert_true(nd_clock_us() < end);
                        assert_true(sd_event_run(f->daemon.loop, ND_SECOND_US) >= 0);
                }
                assert_false(f->called);
                assert_true(!scratch_has(f->root, containers) || scratch_entries(f->root, containers) == 0);
                assert_true(!scratch_has(f->root, "run/containers") || scratch_entries(f->root, "run/containers") == 0);
        }
        remove_pod(f);
        tear_down(f);
}

/* ---- engines that fail or hang, a daemon that is killed ---- */

/* An engine that does its work, but for one verb, which is done as the given words of a shell do it. */
static void use_engine(struct fixture *f, const char *verb, const char *words) {
        nd_autofree char *text =
                nd_format("#!/bin/sh\ncase \"$*\" in *\" %s \"*) %s ;; esac\nexec crun \"$@\"\n", verb, words);
        nd_autofree char *path = nd_format("%s/engine", f->root);

        scratch_text(f->root, "engine", text);
        assert_int_equal(chmod(path, 0755), 0);
        replace(&f->daemon.config.crun, nd_take_ptr(path));
}

/* Another daemon creates a container, and is killed when the engine has got as far as to make a file named "now". */
static void be_killed_while_creating(struct fixture *f) {
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct container_request request = request_of(f, ARGUMENTS("sleep", "60"));

                if (sd_event_new(&f->daemon.loop) < 0)
                        _exit(1);
                container_create(&f->daemon, f->sandbox, &request, "bytes", 5, on_container, f, nullptr);
                while (!scratch_has(f->root, "now") && nd_clock_us() < end)
                        (void) sd_event_run(f->daemon.loop, 10 * ND_MS_US);
                (void) raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_true(scratch_has(f->root, "now"));
}

/* As the next daemon does, but for the request, which is no protobuf here. */
static struct container *load_container(struct fixture *f) {
        nd_autofree char *path = nd_format("%s/state/pods/%s/containers", f->root, f->sandbox->id);
        nd_cleanup(nd_strings_done) struct nd_strings ids = {};
        nd_autofree char *record = nullptr, *json = nullptr;
        struct container *container = nd_new(struct container);
        size_t length;

        expect_ok(nd_dir_list(AT_FDCWD, path, 2, &ids));
        assert_int_equal(ids.count, 1);
        memcpy(container->id, ids.items[0], POD_ID + 1);
        container->sandbox = f->sandbox;
        record = nd_format("%s/%s/container.json", path, container->id);
        expect_ok(nd_file_read(AT_FDCWD, record, RECORD_CEILING, &json, &length));
        expect_ok(record_parse_container(json, length, container));
        pods_add_container(&f->daemon.pods, container);
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
        struct fixture fixture, *f = &fixture;
        nd_autofree char *home = nullptr, *own = nullptr, *crun = nullptr;
        struct container *container;
        int fd;

        set_up(f);
        use_engine(f, "create", create);
        run_pod(f, true, NAMESPACE_CONTAINER);
        be_killed_while_creating(f);
        container = load_container(f);
        assert_int_equal(container->state, CONTAINER_NEW);
        if (*container->monitor_cgroup == '\0') {
                print_message("there is no cgroup v2 of ours: nobody finds a monitor\n");
                remove_pod(f);
                tear_down(f);
                return;
        }
        home = nd_strdup(container->monitor_cgroup);
        expect_ok(resources_cgroup_path(&f->daemon.config, f->sandbox->request.cgroup_parent, container->id, &own));
        crun = nd_format("run/crun/%s", container->id);
        assert_true(has_processes(home));
        expect_ok(remove_it(f, container));
        expect_error(nd_cgroup_open(home, &fd), ND_NOT_FOUND, "monitors");
        expect_error(nd_cgroup_open(own, &fd), ND_NOT_FOUND, "open the cgroup");
        assert_false(scratch_has(f->root, crun));
        assert_int_equal(scratch_entries(f->root, "run/containers"), 0);
        remove_pod(f);
        tear_down(f);
}

static void an_engine_that_hangs_is_ended_by_the_next_daemon([[maybe_unused]] void **state) {
        needs_engine();
        undo_what_hangs(": > \"${0%/*}/now\"; sleep 3600");
}

static void what_an_engine_has_made_before_it_hangs_goes_with_it([[maybe_unused]] void **state) {
        needs_engine();
        undo_what_hangs("crun \"$@\"; : > \"${0%/*}/now\"; sleep 3600");
}

/* The monitor's process: the one in its cgroup. */
static pid_t monitor_of(const struct container *container) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup%s/cgroup.procs", container->monitor_cgroup), *text = nullptr;

        expect_ok(nd_file_read_kernel(path, 4096, &text));
        return (pid_t) strtol(text, nullptr, 10);
}

static void a_monitor_that_hangs_does_not_keep_its_container_from_being_removed([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        struct container *container;
        pid_t monitor;

        needs_engine();
        set_up(f);
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("sleep", "1000"));
        expect_ok(create(f, &request));
        container = f->container;
        expect_ok(start(f, container));
        assert_string_not_equal(container->monitor_cgroup, ""); /* else what follows would stop a stranger */
        monitor = monitor_of(container);
        assert_true(monitor > 1);
        assert_int_equal(kill(monitor, SIGSTOP), 0);
        expect_ok(stop(f, container, 0));
        assert_int_equal(container->state, CONTAINER_EXITED);
        assert_int_equal(container->exit_code, 137);
        expect_contains(container->message, "its monitor died");
        expect_ok(remove_it(f, container));
        assert_int_equal(kill(monitor, 0), -1);
        remove_pod(f);
        tear_down(f);
}

static void a_start_that_fails_after_its_work_is_a_start([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *log = nullptr;

        needs_engine();
        set_up(f);
        use_engine(f, "start", "crun \"$@\"; echo broken >&2; exit 94");
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("cwd", "exit", "16"));
        log = run_to_end(f, &request);
        expect_contains(log, " F cwd /");
        assert_int_equal(f->container->exit_code, 16);
        assert_string_equal(f->container->reason, "Error");
        remove_pod(f);
        tear_down(f);
}

static void a_start_that_fails_before_it_is_none([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;

        needs_engine();
        set_up(f);
        use_engine(f, "start", "echo broken >&2; exit 94");
        run_pod(f, true, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("exit", "16"));
        expect_ok(create(f, &request));
        expect_error(start(f, f->container), ND_INTERNAL, "start the container: crun ended with code 94: broken");
        wait_for_end(f, f->container);
        assert_int_equal(container_told_state(f->container),
                         CONTAINER_CREATED); /* never RUNNING, not even until the disk knows */
        assert_int_equal(f->container->exit_code, 128);
        assert_string_equal(f->container->reason, "StartError");
        remove_pod(f);
        tear_down(f);
}

static void a_privileged_container_has_what_the_node_has([[maybe_unused]] void **state) {
        struct fixture fixture, *f = &fixture;
        struct container_request request;
        nd_autofree char *log = nullptr, *status = nullptr, *line = nullptr;
        const char *bounding;

        needs_engine();
        set_up(f);
        run_pod(f, false, NAMESPACE_CONTAINER);
        request = request_of(f, ARGUMENTS("line", "/proc/self/status", "Cap", "line", "/proc/self/status", "NoNewPrivs",
                                          "line", "/proc/self/status", "Seccomp:", "write", "/sys/fs/cgroup/no-such-file", "x",
                                          "owner", "/dev/full"));
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
        remove_pod(f);
        tear_down(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_container_with_the_hosts_users_sees_what_it_should),
                cmocka_unit_test(a_container_in_a_user_namespace_sees_the_same_with_ids_of_its_own),
                cmocka_unit_test(an_end_is_told_when_the_disk_knows_of_it),
                cmocka_unit_test(the_stop_signal_comes_first_and_sigkill_after_it),
                cmocka_unit_test(a_program_that_is_not_there_is_told_in_cruns_words),
                cmocka_unit_test(what_the_node_lacks_is_said_before_anything_is_made),
                cmocka_unit_test(volumes_are_idmapped_both_ways),
                cmocka_unit_test(containers_of_a_pod_may_share_its_pids),
                cmocka_unit_test(who_waits_for_a_container_that_is_removed_is_told),
                cmocka_unit_test(a_start_that_meets_the_end_of_the_sync_happens_once),
                cmocka_unit_test(an_abandoned_creation_leaves_nothing),
                cmocka_unit_test(an_engine_that_hangs_is_ended_by_the_next_daemon),
                cmocka_unit_test(what_an_engine_has_made_before_it_hangs_goes_with_it),
                cmocka_unit_test(a_monitor_that_hangs_does_not_keep_its_container_from_being_removed),
                cmocka_unit_test(a_start_that_fails_after_its_work_is_a_start),
                cmocka_unit_test(a_start_that_fails_before_it_is_none),
                cmocka_unit_test(a_privileged_container_has_what_the_node_has),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
