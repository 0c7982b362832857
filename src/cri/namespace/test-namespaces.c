/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "cri/core/config.h"
#include "cri/core/paths.h"
#include "cri/namespace/namespaces.h"
#include "cri/namespace/pins.h"
#include "sys/mount.h"
#include "sys/own-userns.h"
#include "sys/worker.h"

enum { HOST = 1 << 20, COUNT = 65536 };

static char empty[] = "", hostname[] = "a-pod";

static struct cri_sandbox_request request_of(bool user_namespace) {
        return (struct cri_sandbox_request) {.hostname = hostname,
                                             .user_namespace = user_namespace,
                                             .uids = {.outside = HOST, .count = COUNT},
                                             .gids = {.outside = HOST, .count = COUNT}};
}

/* ---- sysctls ---- */

static struct nd_error *check(struct cri_sandbox_request request, const char *name, const char *value) {
        struct cri_pair pair = {.key = (char *) name, .value = (char *) value};

        request.sysctls = (struct cri_pairs) {.items = &pair, .count = 1};
        return cri_namespaces_check(&request);
}

static void a_pod_sets_sysctls_of_its_own_namespaces([[maybe_unused]] void **state) {
        struct cri_sandbox_request pod = request_of(false);

        expect_ok(check(pod, "net.ipv4.ip_forward", "1"));
        expect_ok(check(pod, "net.ipv4.conf.eth0/100.forwarding", "1"));
        expect_ok(check(pod, "kernel.shm_rmid_forced", "1"));
        expect_ok(check(pod, "kernel.msgmax", "65536"));
        expect_ok(check(pod, "kernel.sem", "1 2\t3 4"));
        expect_ok(check(pod, "fs.mqueue.msg_max", "100"));
}

static void what_belongs_to_the_node_is_refused([[maybe_unused]] void **state) {
        struct cri_sandbox_request pod = request_of(false), host_network = pod, host_ipc = pod;

        host_network.network = NAMESPACE_NODE;
        host_ipc.ipc = NAMESPACE_NODE;
        expect_error(check(pod, "kernel.core_pattern", "|/x"), ND_INVALID, "'kernel.core_pattern' is not namespaced");
        expect_error(check(pod, "vm.swappiness", "1"), ND_INVALID, "not namespaced");
        expect_error(check(pod, "kernel.hostname", "x"), ND_INVALID, "not namespaced");
        expect_error(check(host_network, "net.ipv4.ip_forward", "1"), ND_INVALID, "because the pod uses the node's network");
        expect_error(check(host_ipc, "kernel.shmmax", "1"), ND_INVALID, "because the pod uses the node's IPC");
        expect_ok(check(host_network, "kernel.shmmax", "1"));
        expect_ok(check(host_ipc, "net.ipv4.ip_forward", "1"));
}

static void a_name_cannot_leave_its_directory_nor_a_value_its_line([[maybe_unused]] void **state) {
        static const char *const names[] = {
                "",           ".",        "net..x",          "net.",         ".net.x", "net.//.//.kernel.core_pattern",
                "net./.x",    "net.//.x", "net.ipv4+kernel", "net.ipv4 x=1", "net.\n", "net.ipv4=1",
                "/etc/passwd"};
        struct cri_sandbox_request pod = request_of(false);

        for (size_t i = 0; i < nd_count_of(names); i++)
                expect_error(check(pod, names[i], "1"), ND_INVALID, "");
        expect_error(check(pod, "net.ipv4.ip_forward", "1\nkernel.core_pattern=x"), ND_INVALID, "not printable");
}

static void sysctls_of_an_interface_wait_for_the_network([[maybe_unused]] void **state) {
        struct cri_pair pair = {.key = (char *) "net.ipv4.conf.eth0.forwarding", .value = (char *) "1"};
        struct cri_sandbox_request pod = request_of(false);

        pod.sysctls = (struct cri_pairs) {.items = &pair, .count = 1};
        assert_true(cri_namespaces_have_late_sysctls(&pod));
        pair.key = (char *) "net.ipv4.conf.all.forwarding";
        assert_false(cri_namespaces_have_late_sysctls(&pod));
}

/* ---- namespaces ---- */

struct fixture {
        char *root;
        struct cri_config config;
        struct nd_own_userns users;
        struct cri_pins *pins;
        struct cri_sandbox sandbox;
};

static void replace(char **field, char *value) {
        free(*field);
        *field = value;
}

/* Call it before anything is set up: skipping jumps past the cleanup. */
static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("pods' namespaces need privilege");
}

static void set_up(struct fixture *f, struct cri_sandbox_request request) {
        *f = (struct fixture) {.root = scratch_make(), .sandbox = {.request = request}};
        memset(f->sandbox.id, 'b', POD_ID);
        cri_config_init(&f->config);
        replace(&f->config.run, nd_format("%s/run", f->root));
        replace(&f->config.netns, nd_format("%s/netns", f->root));
        expect_ok(nd_own_userns_read(&f->users));
        expect_ok(cri_pins_open(&f->config, &f->pins));
}

static void tear_down(struct fixture *f) {
        nd_autofree char *mnt = nd_format("%s/run/pins/mnt", f->root), *pins = nd_format("%s/run/pins", f->root);

        cri_pins_free(f->pins);
        nd_own_userns_done(&f->users);
        cri_config_done(&f->config);
        assert_int_equal(umount2(mnt, MNT_DETACH), 0);
        assert_int_equal(umount2(pins, MNT_DETACH), 0);
        scratch_remove(&f->root);
}

static struct nd_error *make_worker(void *argument, [[maybe_unused]] int *ret_fd) {
        struct fixture *f = argument;

        return cri_namespaces_make(&f->config, &f->users, f->pins, &f->sandbox);
}

static struct nd_error *undo_worker(void *argument, [[maybe_unused]] int *ret_fd) {
        struct fixture *f = argument;

        return cri_namespaces_undo(&f->config, f->pins, &f->sandbox);
}

static struct nd_error *in_worker(struct fixture *f, nd_worker_function function) {
        return nd_worker_run("namespaces", function, f, 60 * ND_SECOND_US, nullptr);
}

/* Inode of a namespace opened by its path; 0 for the host's. */
static ino_t inode_of(const struct fixture *f, enum cri_pod_namespace which) {
        nd_autofree char *path = cri_namespaces_path(&f->config, f->pins, &f->sandbox, which);
        nd_autoclose int fd = -EBADF;
        struct stat st;

        if (!path)
                return 0;
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &st), 0);
        return st.st_ino;
}

static void are_all_there(const struct fixture *f) {
        for (int which = 0; which < POD_NAMESPACES; which++) {
                nd_autofree char *own = nd_format("/proc/self/ns/%s", cri_namespaces_name(which));
                ino_t inode = inode_of(f, which);
                struct stat st;

                assert_int_equal(stat(own, &st), 0);
                assert_int_equal(inode != 0, cri_namespaces_owned(&f->sandbox.request, which));
                assert_true(inode != st.st_ino);
        }
}

static void live_and_go(struct cri_sandbox_request request, size_t lines) {
        size_t before, descriptors;
        struct fixture f;

        set_up(&f, request);
        before = resources_mounts();
        descriptors = resources_descriptors();
        expect_ok(in_worker(&f, make_worker));
        are_all_there(&f);
        assert_int_equal(resources_mounts(), before + lines);
        expect_ok(in_worker(&f, undo_worker));
        expect_ok(in_worker(&f, undo_worker)); /* nothing is left, and that is no error */
        assert_int_equal(resources_mounts(), before);
        assert_int_equal(resources_descriptors(), descriptors);
        assert_int_equal(resources_children(), 0);
        if (scratch_has(f.root, "netns"))
                assert_int_equal(scratch_entries(f.root, "netns"), 0);
        tear_down(&f);
}

static void a_pod_s_namespaces_cost_one_line_in_the_mount_table([[maybe_unused]] void **state) {
        needs_privilege();
        live_and_go(request_of(true), 1);
        live_and_go(request_of(false), 1);
}

static void a_pod_on_the_hosts_network_can_have_a_user_namespace([[maybe_unused]] void **state) {
        struct cri_sandbox_request request = request_of(true);

        needs_privilege();
        request.network = NAMESPACE_NODE;
        request.hostname = empty;
        live_and_go(request, 0);
        request.ipc = NAMESPACE_NODE;
        live_and_go(request, 0);
        request.user_namespace = false; /* it owns no namespace */
        live_and_go(request, 0);
}

static void pins_survive_a_restart_of_the_daemon([[maybe_unused]] void **state) {
        ino_t inodes[POD_NAMESPACES];
        struct fixture f;

        needs_privilege();
        set_up(&f, request_of(true));
        expect_ok(in_worker(&f, make_worker));
        for (int which = 0; which < POD_NAMESPACES; which++)
                inodes[which] = inode_of(&f, which);
        cri_pins_free(f.pins);
        expect_ok(cri_pins_open(&f.config, &f.pins));
        for (int which = 0; which < POD_NAMESPACES; which++)
                assert_int_equal(inode_of(&f, which), inodes[which]);
        expect_ok(in_worker(&f, undo_worker));
        tear_down(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_sets_sysctls_of_its_own_namespaces),
                cmocka_unit_test(what_belongs_to_the_node_is_refused),
                cmocka_unit_test(a_name_cannot_leave_its_directory_nor_a_value_its_line),
                cmocka_unit_test(sysctls_of_an_interface_wait_for_the_network),
                cmocka_unit_test(a_pod_s_namespaces_cost_one_line_in_the_mount_table),
                cmocka_unit_test(a_pod_on_the_hosts_network_can_have_a_user_namespace),
                cmocka_unit_test(pins_survive_a_restart_of_the_daemon),
        };

        scratch_private_mounts();
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
