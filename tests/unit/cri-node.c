/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/cri-node.h>

#include <sys/mount.h>
#include <sys/stat.h>

#include <unit/expect.h>
#include <unit/offers.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "cri/bundle/build-mntns.h"
#include "cri/bundle/runtime-mntns.h"
#include "cri/core/record.h"
#include "cri/namespace/pins.h"
#include "cri/network/network.h"
#include "cri/pod/sandbox.h"
#include "sys/file.h"

static const struct offer_plan image = {.number = 7, .own = 1, .names = {"example.org/test:1"}};

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
static void put_image(struct cri_node *node) {
        const struct nd_image *found = nullptr;
        struct nd_digest chain;
        char hex[ND_DIGEST_HEX];
        nd_autofree char *tree = nullptr, *program = nullptr, *file = nullptr;

        offers_hurry(true);
        expect_ok(offer_commit(node->parts.images, &image));
        offers_hurry(false);
        expect_ok(nd_oci_store_find(node->parts.images, "example.org/test:1", &found));
        nd_image_chains(found, &chain);
        tree = nd_format("%s/images/layers/%s/fs", node->root, nd_digest_hex(&chain, hex));
        program = nd_format("%s/bin/program", tree);
        copy_program(program);
        scratch_mkdir(tree, "etc");
        scratch_text(tree, "etc/passwd", "root:x:0:0::/root:/\nseven:x:1007:1008::/:/\n");
        scratch_text(tree, "etc/group", "root:x:0:\nextra:x:50000:seven\n");
        file = nd_format("chmod 755 '%s' '%s/bin' '%s/etc'; chmod 644 '%s'/etc/*", tree, tree, tree, tree);
        assert_int_equal(system(file), 0);
}

void cri_node_make(struct cri_node *node) {
        struct cri_config *config = &node->parts.config;
        nd_autofree char *images = nullptr, *layers = nullptr;

        *node = (struct cri_node) {.root = scratch_make()};
        assert_int_equal(chmod(node->root, 0711), 0);
        scratch_mkdir(node->root, "net.d");
        scratch_mkdir(node->root, "state");
        scratch_mkdir(node->root, "images");
        scratch_mkdir(node->root, "logs");
        cri_config_init(config);
        replace(&config->state, nd_format("%s/state", node->root));
        replace(&config->run, nd_format("%s/run", node->root));
        replace(&config->netns, nd_format("%s/netns", node->root));
        replace(&config->cni_config, nd_format("%s/net.d", node->root));
        replace(&config->monitor, nd_strdup(getenv("NODENS_MON")));
        config->systemd_cgroups = false;
        expect_ok(nd_own_userns_read(&node->parts.users));
        assert_true(sd_event_new(&node->parts.loop) >= 0);
        expect_ok(cri_pins_open(config, &node->parts.pins));
        expect_ok(cri_record_store_open(config, &node->parts.records));
        node->parts.network = cri_network_new(node->parts.loop, config);
        images = nd_format("%s/images", node->root);
        expect_ok(nd_oci_store_open(images, &node->parts.images));
        layers = nd_format("%s/layers", images);
        expect_ok(cri_build_mntns_open(config, layers, &node->parts.build_mntns));
        expect_ok(cri_runtime_mntns_open(node->parts.loop, config, &node->parts.runtime_mntns));
        put_image(node);
}

void cri_node_done(struct cri_node *node) {
        nd_autofree char *mnt = nd_format("%s/run/pins/mnt", node->root), *pins = nd_format("%s/run/pins", node->root);

        cri_pod_table_done(&node->parts.pods);
        cri_network_free(node->parts.network);
        cri_record_store_free(node->parts.records);
        cri_pins_free(node->parts.pins);
        cri_runtime_mntns_free(node->parts.runtime_mntns);
        cri_build_mntns_free(node->parts.build_mntns);
        nd_oci_store_free(node->parts.images);
        sd_event_unref(node->parts.loop);
        nd_own_userns_done(&node->parts.users);
        cri_config_done(&node->parts.config);
        assert_int_equal(umount2(mnt, MNT_DETACH), 0);
        assert_int_equal(umount2(pins, MNT_DETACH), 0);
        scratch_remove(&node->root);
}

void cri_node_needs_oci_runtime(void) {
        if (geteuid() != 0 || !getenv("CONTAINER_PROGRAM") || !getenv("NODENS_MON"))
                skip_because("containers need privilege, and meson sets the paths of the programs");
        if (system("command -v crun >/dev/null") != 0)
                skip_because("there is no crun");
}

void cri_node_use_oci_runtime(struct cri_node *node, const char *verb, const char *words) {
        nd_autofree char *text =
                nd_format("#!/bin/sh\ncase \"$*\" in *\" %s \"*) %s ;; esac\nexec crun \"$@\"\n", verb, words);
        nd_autofree char *path = nd_format("%s/engine", node->root);

        scratch_text(node->root, "engine", text);
        assert_int_equal(chmod(path, 0755), 0);
        replace(&node->parts.config.crun, nd_take_ptr(path));
}

/* ---- operations, waited for ---- */

struct nd_error *cri_node_wait(struct cri_node *node) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        while (!node->called) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(node->parts.loop, ND_SECOND_US) >= 0);
        }
        node->called = false;
        return nd_take_ptr(node->error);
}

static void on_sandbox(struct nd_error *error, struct cri_sandbox *sandbox, void *userdata) {
        struct cri_node *node = userdata;

        node->called = true;
        node->error = error;
        node->sandbox = sandbox;
}

void cri_node_on_container(struct nd_error *error, struct cri_container *container, void *userdata) {
        struct cri_node *node = userdata;

        node->called = true;
        node->error = error;
        node->container = container;
}

struct nd_error *cri_node_try_pod(struct cri_node *node, bool mapped, enum cri_namespace_mode pid) {
        struct cri_sandbox_request request = {
                .name = nd_strdup("web"),
                .uid = nd_strdup("u-1"),
                .namespace = nd_strdup("default"),
                .hostname = nd_strdup(""),
                .log_directory = nd_format("%s/logs", node->root),
                .cgroup_parent = nd_format("/%s", strrchr(node->root, '/') + 1),
                .runtime_handler = nd_strdup(""),
                .network = NAMESPACE_NODE,
                .pid = pid,
                .user_namespace = mapped,
                .uids = {.outside = mapped ? CRI_NODE_HOST : 0, .count = mapped ? CRI_NODE_COUNT : 0},
                .gids = {.outside = mapped ? CRI_NODE_HOST : 0, .count = mapped ? CRI_NODE_COUNT : 0}};

        cri_sandbox_run(&node->parts, &request, "bytes", 5, on_sandbox, node, nullptr);
        return cri_node_wait(node);
}

void cri_node_run_pod(struct cri_node *node, bool mapped, enum cri_namespace_mode pid) {
        expect_ok(cri_node_try_pod(node, mapped, pid));
}

void cri_node_remove_pod(struct cri_node *node) {
        nd_autofree char *cgroup = nd_format("/sys/fs/cgroup/%s", strrchr(node->root, '/') + 1);

        cri_sandbox_stop(&node->parts, node->sandbox, on_sandbox, node, nullptr);
        expect_ok(cri_node_wait(node));
        cri_sandbox_remove(&node->parts, node->sandbox, on_sandbox, node, nullptr);
        expect_ok(cri_node_wait(node));
        if (rmdir(cgroup) < 0 && errno != ENOENT)
                fail_msg("%s: %s", cgroup, strerror(errno));
}

struct cri_container_request cri_node_request(const struct cri_node *node, const char *const *arguments) {
        const struct cri_sandbox_request *pod = &node->sandbox->request;
        struct cri_container_request request = {
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

struct nd_error *cri_node_create(struct cri_node *node, struct cri_container_request *request) {
        cri_container_create(&node->parts, node->sandbox, request, "bytes", 5, cri_node_on_container, node, nullptr);
        return cri_node_wait(node);
}

struct nd_error *cri_node_start(struct cri_node *node, struct cri_container *container) {
        cri_container_start(&node->parts, container, cri_node_on_container, node, nullptr);
        return cri_node_wait(node);
}

struct nd_error *cri_node_stop(struct cri_node *node, struct cri_container *container, int64_t timeout_s) {
        cri_container_stop(&node->parts, container, timeout_s, cri_node_on_container, node, nullptr);
        return cri_node_wait(node);
}

struct nd_error *cri_node_remove(struct cri_node *node, struct cri_container *container) {
        cri_container_remove(&node->parts, container, cri_node_on_container, node, nullptr);
        return cri_node_wait(node);
}

void cri_node_wait_for_exit(struct cri_node *node, const struct cri_container *container) {
        uint64_t end = nd_clock_us() + 20 * ND_SECOND_US;

        while (container->state != CONTAINER_EXITED) {
                assert_true(nd_clock_us() < end);
                assert_true(sd_event_run(node->parts.loop, 100 * ND_MS_US) >= 0);
        }
}

/* In the cgroup of the monitor lives the OCI runtime, too, while it creates the container. */
pid_t cri_node_monitor(const struct cri_container *container) {
        nd_autofree char *path = nd_format("/sys/fs/cgroup%s/cgroup.procs", container->monitor_cgroup), *text = nullptr;

        expect_ok(nd_file_read_kernel(path, 4096, &text));
        for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
                pid_t pid = (pid_t) strtol(at, nullptr, 10);
                nd_autofree char *file = nd_format("/proc/%d/comm", (int) pid), *name = nullptr;

                expect_ok(nd_file_read_kernel(file, 64, &name));
                if (strncmp(name, "nodens-mon", strlen("nodens-mon")) == 0)
                        return pid;
        }
        return 0;
}

/* ---- several operations at once ---- */

void cri_node_on_answer(struct nd_error *error, [[maybe_unused]] struct cri_container *container, void *userdata) {
        struct cri_node_answer *answer = userdata;

        answer->called = true;
        answer->code = nd_error_code(error);
        nd_error_free(error);
}

void cri_node_wait_for_answers(struct cri_node *node, const struct cri_node_answer *answers, size_t count) {
        uint64_t end = nd_clock_us() + 30 * ND_SECOND_US;

        for (size_t i = 0; i < count; i++)
                while (!answers[i].called) {
                        assert_true(nd_clock_us() < end);
                        assert_true(sd_event_run(node->parts.loop, ND_SECOND_US) >= 0);
                }
}
