/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c - `nodens-rootless shell`: runs a command in a running node, whose namespaces it joins
 * through init's pidfd
 *
 * Theory of operation
 *   This process stays outside and copies between the terminals (console.h). Its child closes every
 *   descriptor that the command does not need, leaves the session, enters the node and clones the
 *   monitor (session.h), the first process that the node can see.
 *   Root of the node may trace any process in its user namespace. This process is in none of the
 *   node's namespaces, so even a descriptor of it would be useless there. The child and the monitor
 *   are not dumpable, so they cannot be traced while they enter. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "rootless/command/commands.h"
#include "rootless/core/node.h"
#include "rootless/node/console.h"
#include "rootless/node/seccomp.h"
#include "sys/calls.h"

struct job {
        sd_event *loop;
        struct rootless_console *console;
        int child;   /* pidfd of the child */
        int failure; /* reports why the command could not be executed */
        int code;    /* our exit status */
        int status;  /* errno of the failed execve() */
};

static void job_done(struct job *job) {
        rootless_console_free(job->console);
        nd_close_fd(&job->child);
        nd_close_fd(&job->failure);
        sd_event_unref(job->loop);
}

/* ---- the child ---- */

static struct nd_error *enter(const struct rootless_node_record *record) {
        int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

        if (!nd_streq(record->net, "host"))
                flags |= CLONE_NEWNET;
        if (nd_sys->setns(SESSION_NODE, flags) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "enter the node");
        (void) syscall(SYS_setgroups, 0, nullptr);
        if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0 ||
            prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "become root of the node");
        return rootless_seccomp_load();
}

/* setns() to a PID namespace affects only children, so the child clones the monitor. */
[[noreturn]] static void child_main(const struct rootless_node_record *record, const struct rootless_session *session) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        struct nd_error *error = nullptr;
        siginfo_t end = {};
        pid_t pid;

        (void) setsid();
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || rootless_session_prepare(session) < 0)
                _exit(EXIT_FAILURE);
        error = enter(record);
        if (error)
                _exit(rootless_command_fail(error));
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid == 0)
                rootless_session_lead(session);
        if (pid < 0)
                _exit(rootless_command_fail(nd_error_new(nd_error_code_of(errno), errno, "start a process in the node")));
        /* the reader of a pipe must see EOF when the command exits */
        (void) close_range(0, ~0U, 0);
        while (waitid(P_PID, (id_t) pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        _exit(end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status);
}

/* ---- this process ---- */

static int on_ended([[maybe_unused]] sd_event_source *source, [[maybe_unused]] int fd, [[maybe_unused]] uint32_t events,
                    void *userdata) {
        struct job *job = userdata;
        siginfo_t end = {};

        if (waitid(P_PIDFD, (id_t) job->child, &end, WEXITED | WNOHANG) < 0 || end.si_pid == 0)
                return 0;
        job->code = end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
        if (read(job->failure, &job->status, sizeof job->status) != sizeof job->status)
                job->status = 0;
        return sd_event_exit(job->loop, 0);
}

static struct nd_error *start(struct job *job, const struct rootless_node_record *record, struct rootless_session *session) {
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &job->child};
        nd_autoclose int failure_end = -EBADF;
        int fds[2];
        pid_t pid;

        if (nd_sys->pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe");
        job->failure = fds[0];
        failure_end = fds[1];
        session->failure = failure_end;
        rootless_console_block_signals(job->console);
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start a process");
        if (pid == 0)
                child_main(record, session);
        return nullptr;
}

static struct nd_error *follow(struct job *job) {
        int r = sd_event_new(&job->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_console_start(job->console, job->loop));
        r = sd_event_add_io(job->loop, nullptr, job->child, EPOLLIN, on_ended, job);
        if (r >= 0)
                r = sd_event_loop(job->loop);
        rootless_console_drain(job->console);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the command") : nullptr;
}

static struct nd_error *shell(const char *name, char **words, int *ret_code) {
        static char *const shell_words[] = {(char *) "/bin/sh", nullptr};
        nd_cleanup(job_done) struct job job = {.child = -EBADF, .failure = -EBADF};
        nd_cleanup(rootless_node_done) struct rootless_node node = NODE_NONE;
        nd_cleanup(rootless_node_record_done) struct rootless_node_record record = {};
        nd_cleanup(nd_strings_done) struct nd_strings environment = {};
        nd_autofree char *api = nullptr, *uid = nd_format("%u", geteuid()), *gid = nd_format("%u", getegid());
        struct rootless_session session = {.argv = words ? words : shell_words, .directory = "/root"};
        nd_autoclose int pidfd = -EBADF;

        nd_try(rootless_node_open(name, false, &node));
        nd_try(rootless_node_open_init(&node, &record, &pidfd));
        api = nd_format("%s/api", node.path);
        environment = rootless_config_environment(environ, name, api, uid, gid);
        session.environment = environment.items;
        session.node = pidfd;
        nd_try(rootless_console_open(&record, &job.console));
        rootless_console_session(job.console, &session);
        nd_try(start(&job, &record, &session));
        nd_try(follow(&job));
        *ret_code = job.code;
        return job.status == 0 ? nullptr
                               : nd_error_new(nd_error_code_of(job.status), job.status, "execute '%s'", session.argv[0]);
}

int rootless_command_shell(void *settings, int operand_count, char **operands) {
        const struct rootless_settings *given = settings;
        nd_autofree char **words = operand_count > 0 ? nd_calloc((size_t) operand_count + 1, sizeof *words) : nullptr;
        struct nd_error *error;
        int code = EXIT_FAILURE;

        if (words)
                memcpy(words, operands, (size_t) operand_count * sizeof *words);
        error = shell(given->name ? given->name : NODE_DEFAULT_NAME, words, &code);
        if (!error)
                return code;
        (void) rootless_command_fail(error);
        return code;
}
