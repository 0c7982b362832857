/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/expect.h>
#include <unit/scratch.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/text.h"
#include "mon/confine.h"
#include "sys/file.h"
#include "sys/machine.h"

/* ---- the filter, interpreted like the kernel does ---- */

static uint32_t word_at(const struct seccomp_data *data, uint32_t offset) {
        uint32_t word;

        assert_true(offset % 4 == 0 && offset < sizeof *data);
        memcpy(&word, (const char *) data + offset, sizeof word);
        return word;
}

static uint32_t decide(const struct seccomp_data *data) {
        struct sock_filter program[ND_CALL_FILTER_MOST];
        size_t length = nd_call_filter_build(&mon_confine_filter, program);
        uint32_t a = 0;

        for (size_t at = 0; at < length; at++) {
                const struct sock_filter *step = program + at;

                switch (step->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        a = word_at(data, step->k);
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        at += a == step->k ? step->jt : step->jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        at += a >= step->k ? step->jt : step->jf;
                        break;
                case BPF_JMP | BPF_JSET | BPF_K:
                        at += (a & step->k) != 0 ? step->jt : step->jf;
                        break;
                case BPF_RET | BPF_K:
                        return step->k;
                default:
                        fail_msg("unknown instruction at %zu", at);
                }
        }
        fail_msg("the filter does not end");
        return 0;
}

static uint32_t decide_call(int number, unsigned argument, uint64_t value) {
        struct seccomp_data data = {.nr = number, .arch = ND_AUDIT_ARCH};

        data.args[argument] = value;
        return decide(&data);
}

static void only_system_calls_of_the_loop_are_allowed([[maybe_unused]] void **state) {
        static const int refused[] = {
                SYS_openat,    SYS_execve, SYS_execveat, SYS_clone3,     SYS_clone,           SYS_ptrace,       SYS_socket,
                SYS_connect,   SYS_bind,   SYS_mount,    SYS_setns,      SYS_unshare,         SYS_kill,         SYS_tgkill,
                SYS_prctl,     SYS_capset, SYS_bpf,      SYS_keyctl,     SYS_io_uring_setup,  SYS_memfd_create, SYS_unlinkat,
                SYS_renameat2, SYS_fchmod, SYS_fchown,   SYS_pidfd_open, SYS_process_vm_readv};
        static const int allowed[] = {SYS_read,    SYS_writev,  SYS_ppoll,  SYS_accept4,
                                      SYS_recvmsg, SYS_openat2, SYS_waitid, SYS_exit_group};

        for (size_t i = 0; i < nd_count_of(refused); i++)
                assert_int_equal(decide_call(refused[i], 0, 0), SECCOMP_RET_ERRNO | EPERM);
        for (size_t i = 0; i < nd_count_of(allowed); i++)
                assert_int_equal(decide_call(allowed[i], 0, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(decide_call(SYS_ioctl, 1, TIOCSWINSZ), SECCOMP_RET_ALLOW);
        assert_int_equal(decide_call(SYS_ioctl, 1, TIOCSTI), SECCOMP_RET_ERRNO | EPERM);
        assert_int_equal(decide_call(SYS_mmap, 2, PROT_READ | PROT_WRITE), SECCOMP_RET_ALLOW);
        assert_int_equal(decide_call(SYS_mmap, 2, PROT_READ | PROT_EXEC), SECCOMP_RET_ERRNO | EPERM);
        assert_int_equal(decide_call(SYS_mprotect, 2, PROT_EXEC), SECCOMP_RET_ERRNO | EPERM);
}

static void calls_of_another_architecture_kill([[maybe_unused]] void **state) {
        assert_int_equal(decide(&(struct seccomp_data) {.nr = SYS_read, .arch = AUDIT_ARCH_I386}), SECCOMP_RET_KILL_PROCESS);
        assert_int_equal(decide(&(struct seccomp_data) {.nr = SYS_read, .arch = AUDIT_ARCH_ARM}), SECCOMP_RET_KILL_PROCESS);
        /* x32 */
        assert_int_equal(decide_call(ND_CALLS_END | SYS_read, 0, 0), SECCOMP_RET_KILL_PROCESS);
}

/* ---- a process that is confined ---- */

/* Runs in the child after the confinement and returns its exit status; 0 = success. */
typedef int (*trial_function)(struct mon_log *log);

static pid_t start(const char *directory, trial_function trial) {
        pid_t pid = fork();
        struct mon_log log;

        if (pid != 0)
                return pid;
        expect_ok(mon_log_open(directory, "sub/0.log", &log));
        if (mon_confine(&log))
                _exit(99);
        _exit(trial(&log));
}

static int exit_of(pid_t pid) {
        int status = 0;

        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int reopen_and_write(struct mon_log *log) {
        struct mon_line_buffer buffer = {.length = 5, .bytes = "line\n"};

        mon_log_write(log, "stdout", &buffer, true);
        if (mon_log_reopen(log) < 0)
                return 1;
        buffer = (struct mon_line_buffer) {.length = 5, .bytes = "more\n"};
        mon_log_write(log, "stdout", &buffer, true);
        return log->lost > 0 ? 2 : 0;
}

/* Attempts of an attacker in the process to escape: UID 0 with openat2(). */
static int try_to_leave(struct mon_log *log) {
        struct open_how how = {.flags = O_RDONLY | O_CLOEXEC}, make = {.flags = O_WRONLY | O_CREAT | O_CLOEXEC, .mode = 0644};
        int fd;

        if (openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0 || errno != EPERM)
                return 1;
        if (syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", &how, sizeof how) >= 0 || errno != EACCES)
                return 2;
        if (syscall(SYS_openat2, AT_FDCWD, "/tmp/nodens-escaped", &make, sizeof make) >= 0 || errno != EACCES)
                return 3;
        if (syscall(SYS_openat2, log->directory, "../escaped", &make, sizeof make) >= 0 || errno != EACCES)
                return 4;
        if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || fork() >= 0)
                return 5;
        if (kill(getppid(), 0) >= 0)
                return 6;
        fd = (int) syscall(SYS_openat2, log->directory, "sub/1.log", &make, sizeof make);
        return fd < 0 ? 7 : 0;
}

static int wait_for_death([[maybe_unused]] struct mon_log *log) {
        return poll(nullptr, 0, -1);
}

static char *status_of(pid_t pid) {
        nd_autofree char *path = nd_format("/proc/%d/status", (int) pid);
        char *text = nullptr;

        for (unsigned i = 0; i < 1000; i++) {
                free(text);
                expect_ok(nd_file_read_kernel(path, 64 << 10, &text));
                if (strstr(text, "Seccomp:\t2"))
                        break;
                (void) usleep(10000);
        }
        return text;
}

static void needs_root(void) {
        if (geteuid() != 0)
                skip_because("needs root: only root has capabilities to drop");
}

static void a_confined_monitor_has_no_privileges_and_still_writes_the_log([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *status = nullptr, *log = nullptr;
        pid_t pid;

        needs_root();
        scratch_mkdir(d, "logs/sub");
        {
                nd_autofree char *logs = nd_format("%s/logs", d);

                assert_int_equal(exit_of(start(logs, reopen_and_write)), 0);
                pid = start(logs, wait_for_death);
        }
        status = status_of(pid);
        expect_contains(status, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
        expect_contains(status, "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n");
        expect_contains(status, "NoNewPrivs:\t1\nSeccomp:\t2\n");
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void) exit_of(pid);
        log = scratch_read(d, "logs/sub/0.log");
        expect_contains(log, "stdout F line\n");
        expect_contains(log, "stdout F more\n");
}

static void a_log_in_a_directory_of_another_user_can_be_reopened([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *logs = nd_format("%s/logs", d), *sub = nd_format("%s/logs/sub", d), *status = nullptr;
        pid_t pid;

        needs_root();
        scratch_mkdir(d, "logs/sub");
        assert_int_equal(chown(sub, 12345, 12345), 0);
        assert_int_equal(chmod(sub, 0700), 0);
        assert_int_equal(exit_of(start(logs, reopen_and_write)), 0);
        pid = start(logs, wait_for_death);
        status = status_of(pid);
        expect_contains(status, "CapEff:\t0000000000000002\n"); /* CAP_DAC_OVERRIDE only */
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void) exit_of(pid);
}

static void a_compromised_monitor_reaches_only_its_logs([[maybe_unused]] void **state) {
        scratch_directory d = scratch_make();
        nd_autofree char *logs = nd_format("%s/logs", d);
        int code;

        needs_root();
        scratch_mkdir(d, "logs/sub");
        code = exit_of(start(logs, try_to_leave));
        if (code == 2 && syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) < 0)
                skip_because("this kernel has no Landlock");
        assert_int_equal(code, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(only_system_calls_of_the_loop_are_allowed),
                cmocka_unit_test(calls_of_another_architecture_kill),
                cmocka_unit_test(a_confined_monitor_has_no_privileges_and_still_writes_the_log),
                cmocka_unit_test(a_log_in_a_directory_of_another_user_can_be_reopened),
                cmocka_unit_test(a_compromised_monitor_reaches_only_its_logs),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
