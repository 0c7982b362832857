/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>

#include <linux/magic.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <unit/faults.h>
#include <unit/resources.h>
#include <unit/scratch.h>

#include "base/clock.h"
#include "base/text.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/namespace.h"
#include "sys/worker.h"

enum { HOST = 1 << 20, COUNT = 65536 };

static const struct nd_userns_map block = {.inside = 0, .outside = HOST, .count = COUNT};
static const struct nd_userns_plan user = {
        .uids = &block, .uid_count = 1, .gids = &block, .gid_count = 1, .charge_to_root = true};

/* Call this first: skipping jumps past the cleanup. */
static void needs_privilege(void) {
        if (geteuid() != 0)
                skip_because("pods' namespaces need privilege");
}

static struct nd_error *enter(const struct nd_namespace_set *made) {
        /* Host root may enter namespaces of a mapped root. */
        const int fds[] = {made->net, made->ipc, made->uts};

        for (size_t i = 0; i < nd_count_of(fds); i++)
                if (fds[i] >= 0 && nd_sys->setns(fds[i], 0) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "setns");
        return nullptr;
}

/* A worker that returns what it sees inside as the text of an error. */
static struct nd_error *look([[maybe_unused]] void *argument, [[maybe_unused]] int *ret_fd) {
        nd_autoclose int fd = -EBADF;
        nd_autofree char *ports = nullptr, *ping = nullptr, *shm = nullptr;
        struct ifreq request = {.ifr_name = "lo"};
        char name[65] = "";

        nd_try(enter(argument));
        fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0 || gethostname(name, sizeof name) < 0)
                return nd_error_new(ND_INTERNAL, errno, "look");
        nd_try(nd_file_read_kernel("/proc/sys/net/ipv4/ip_unprivileged_port_start", 64, &ports));
        nd_try(nd_file_read_kernel("/proc/sys/net/ipv4/ping_group_range", 64, &ping));
        nd_try(nd_file_read_kernel("/proc/sys/kernel/shm_rmid_forced", 64, &shm));
        return nd_error_new(ND_ABORTED, 0, "%s lo=%s ports=%.*s ping=%.*s shm=%.*s", name,
                            request.ifr_flags & IFF_UP ? "up" : "down", (int) strcspn(ports, "\n"), ports,
                            (int) strcspn(ping, "\n"), ping, (int) strcspn(shm, "\n"), shm);
}

static const struct nd_namespace_sysctl sysctls[] = {
        {.path = "net/ipv4/ip_unprivileged_port_start", .value = "0"},
        {.path = "net/ipv4/ping_group_range", .value = "0 65535"},
        {.path = "kernel/shm_rmid_forced", .value = "1"},
        {.path = "net/ipv4/there_is_none", .value = "1", .optional = true},
};

static struct nd_namespace_plan plan_with(const struct nd_userns_plan *owner) {
        return (struct nd_namespace_plan) {.user = owner,
                                           .flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
                                           .hostname = "a-pod",
                                           .sysctls = sysctls,
                                           .sysctl_count = nd_count_of(sysctls)};
}

static void see_a_pod(const struct nd_userns_plan *owner, uid_t expected) {
        size_t before = resources_descriptors();

        {
                nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
                struct nd_namespace_plan plan = plan_with(owner);
                uid_t uid = 0;

                expect_ok(nd_namespace_make(&plan, &made));
                assert_int_equal(made.user >= 0, owner != nullptr);
                if (owner) {
                        assert_int_equal(ioctl(made.user, NS_GET_OWNER_UID, &uid), 0);
                        assert_int_equal(uid, expected);
                }
                expect_error(nd_worker_run("look", look, &made, 60 * ND_SECOND_US, nullptr), ND_ABORTED,
                             /* As the host sees its group 0 to 65535. */
                             owner ? "a-pod lo=up ports=0 ping=1048576\t1114111 shm=1"
                                   : "a-pod lo=up ports=0 ping=0\t65535 shm=1");
        }
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static void a_pod_s_namespaces_are_set_up_from_within_with_a_user_namespace_as_their_owner([[maybe_unused]] void **state) {
        needs_privilege();
        see_a_pod(&user, HOST);
}

static void a_pod_s_namespaces_are_set_up_from_within_for_the_host_s_users([[maybe_unused]] void **state) {
        needs_privilege();
        see_a_pod(nullptr, 0);
}

static void the_others_belong_to_the_new_user_namespace([[maybe_unused]] void **state) {
        needs_privilege();

        nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
        struct nd_namespace_plan plan = plan_with(&user);
        struct stat wanted, found;

        expect_ok(nd_namespace_make(&plan, &made));
        assert_int_equal(fstat(made.user, &wanted), 0);
        for (size_t i = 0; i < 3; i++) {
                nd_autoclose int owner = ioctl((const int[]) {made.net, made.ipc, made.uts}[i], NS_GET_USERNS);

                assert_true(owner >= 0);
                assert_int_equal(fstat(owner, &found), 0);
                assert_int_equal(found.st_ino, wanted.st_ino);
        }
}

static void a_user_namespace_can_stand_alone([[maybe_unused]] void **state) {
        needs_privilege();

        nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;

        expect_ok(nd_namespace_make(&(struct nd_namespace_plan) {.user = &user}, &made));
        assert_true(made.user >= 0);
        assert_true(made.net < 0 && made.ipc < 0 && made.uts < 0);
}

static void a_sysctl_that_fails_is_named([[maybe_unused]] void **state) {
        needs_privilege();

        size_t before = resources_descriptors();
        struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
        struct nd_namespace_plan plan = plan_with(&user);
        struct nd_namespace_sysctl bad = {.path = "net/ipv4/there_is_none", .value = "1"};

        plan.sysctls = &bad;
        plan.sysctl_count = 1;
        expect_error(nd_namespace_make(&plan, &made), ND_INVALID,
                     "sysctl 'net/ipv4/there_is_none': this kernel does not have it");
        bad = (struct nd_namespace_sysctl) {.path = "net/ipv4/ip_unprivileged_port_start", .value = "x"};
        expect_error(nd_namespace_make(&plan, &made), ND_INVALID, "refuses the value 'x'");
        assert_int_equal(resources_descriptors(), before);
        assert_int_equal(resources_children(), 0);
}

static struct nd_error *pin_and_unpin(void *directory, [[maybe_unused]] int *ret_fd) {
        nd_cleanup(nd_namespace_set_done) struct nd_namespace_set made = ND_NAMESPACE_SET_NONE;
        nd_autofree char *path = nd_format("%s/pin", (char *) directory);
        struct stat wanted, found;
        struct statfs fs;

        nd_try(nd_mount_namespace_private());
        nd_try(nd_namespace_make(&(struct nd_namespace_plan) {.flags = CLONE_NEWUTS}, &made));
        nd_try(nd_namespace_pin(made.uts, AT_FDCWD, path));
        if (statfs(path, &fs) < 0 || fs.f_type != NSFS_MAGIC || stat(path, &found) < 0 || fstat(made.uts, &wanted) < 0 ||
            wanted.st_ino != found.st_ino)
                return nd_error_new(ND_INTERNAL, errno, "the pin is another thing");
        if (nd_error_code(nd_namespace_pin(made.uts, AT_FDCWD, path)) != ND_EXISTS)
                return nd_error_new(ND_INTERNAL, 0, "pinned twice");
        nd_try(nd_namespace_unpin(path));
        if (access(path, F_OK) == 0)
                return nd_error_new(ND_INTERNAL, 0, "the file is left");
        return nd_namespace_unpin(path); /* nothing there: fine */
}

static void a_pin_keeps_a_namespace_alive_until_it_is_removed([[maybe_unused]] void **state) {
        needs_privilege();

        scratch_directory directory = scratch_make();

        expect_ok(nd_worker_run("pin", pin_and_unpin, directory, 60 * ND_SECOND_US, nullptr));
        assert_int_equal(scratch_entries(directory, "."), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_s_namespaces_are_set_up_from_within_with_a_user_namespace_as_their_owner),
                cmocka_unit_test(a_pod_s_namespaces_are_set_up_from_within_for_the_host_s_users),
                cmocka_unit_test(the_others_belong_to_the_new_user_namespace),
                cmocka_unit_test(a_user_namespace_can_stand_alone),
                cmocka_unit_test(a_sysctl_that_fails_is_named),
                cmocka_unit_test(a_pin_keeps_a_namespace_alive_until_it_is_removed),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
