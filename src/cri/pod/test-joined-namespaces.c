/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/pod/joined-namespaces.h"

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unit/expect.h>

#include "cri/namespace/namespaces.h"
#include "sys/file.h"

/* A process in ipc and uts namespaces of its own, which waits to be killed. */
static pid_t make_process(void) {
        int ready[2];
        char byte = 0;
        pid_t child;

        assert_int_equal(pipe(ready), 0);
        child = fork();
        if (child == 0) {
                if (unshare(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS) < 0 || write(ready[1], "x", 1) != 1)
                        _exit(1);
                pause();
                _exit(0);
        }
        nd_close_fd(&ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        nd_close_fd(&ready[0]);
        return child;
}

static void end_process(pid_t child) {
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, nullptr, 0), child);
}

static uint64_t birth_of(pid_t pid) {
        nd_autofree char *path = nd_format("/proc/%d/stat", (int) pid), *text = nullptr;
        char *at;

        expect_ok(nd_file_read_kernel(path, 4096, &text));
        at = strrchr(text, ')');
        for (int i = 2; i < 22; i++)
                at = strchr(at + 1, ' ');
        return strtoull(at + 1, nullptr, 10);
}

static void only_the_pid_namespace_of_the_recorded_process_is_opened([[maybe_unused]] void **state) {
        struct cri_container container = {.state = CONTAINER_RUNNING};
        nd_autoclose int fd = -EBADF;
        struct stat found, own;

        if (geteuid() != 0)
                skip_because("namespaces need privilege");
        container.pid = make_process();
        container.pid_birth = birth_of(container.pid);
        expect_ok(cri_joined_namespaces_open(&container, "the target", &fd));
        assert_int_equal(fstat(fd, &found), 0);
        assert_int_equal(stat("/proc/self/ns/pid", &own), 0);
        assert_true(found.st_ino == own.st_ino);
        nd_close_fd(&fd);
        container.pid_birth++; /* as if the pid had been reused */
        expect_error(cri_joined_namespaces_open(&container, "the target", &fd), ND_PRECONDITION,
                     "the target is not running: cannot join its pid namespace");
        container.pid_birth--;
        container.state = CONTAINER_EXITED;
        expect_error(cri_joined_namespaces_open(&container, "the target", &fd), ND_PRECONDITION, "is not running");
        container.state = CONTAINER_RUNNING;
        end_process(container.pid);
        expect_error(cri_joined_namespaces_open(&container, "the target", &fd), ND_PRECONDITION, "is not running");
        expect_error(cri_joined_namespaces_open(nullptr, "the pod's init", &fd), ND_PRECONDITION,
                     "the pod's init is not running");
        assert_int_equal(fd, -EBADF);
}

static void a_process_in_a_wrong_namespace_is_detected([[maybe_unused]] void **state) {
        struct cri_bundle_plan plan = {};
        nd_autofree char *ipc = nullptr, *uts = nullptr;
        nd_autoclose int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
        pid_t child;

        if (geteuid() != 0)
                skip_because("namespaces need privilege");
        child = make_process();
        ipc = nd_format("/proc/%d/ns/ipc", (int) child);
        uts = nd_format("/proc/%d/ns/uts", (int) child);
        expect_error(cri_joined_namespaces_check(child, &plan, -EBADF), ND_INTERNAL, "in the wrong namespace: ipc:[");
        plan.namespaces[POD_IPC] = ipc;
        expect_error(cri_joined_namespaces_check(child, &plan, -EBADF), ND_INTERNAL, "in the wrong namespace: uts:[");
        plan.namespaces[POD_UTS] = uts;
        /* the host's pid namespace, as planned */
        expect_ok(cri_joined_namespaces_check(child, &plan, -EBADF));
        expect_ok(cri_joined_namespaces_check(child, &plan, own));
        plan.pid = "";
        expect_error(cri_joined_namespaces_check(child, &plan, -EBADF), ND_INTERNAL, "in the wrong namespace: pid:[");
        plan.namespaces[POD_NET] = ipc;
        expect_error(cri_joined_namespaces_check(child, &plan, own), ND_INTERNAL, "in the wrong namespace: net:[");
        expect_error(cri_joined_namespaces_check(getpid(), &(struct cri_bundle_plan) {}, -EBADF), ND_INTERNAL,
                     "in the wrong namespace: mnt:[");
        end_process(child);
        plan.namespaces[POD_IPC] = plan.namespaces[POD_UTS] = plan.namespaces[POD_NET] = nullptr;
        /* an exited process has no namespaces */
        expect_ok(cri_joined_namespaces_check(child, &plan, own));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_the_pid_namespace_of_the_recorded_process_is_opened),
                cmocka_unit_test(a_process_in_a_wrong_namespace_is_detected),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
