/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c - `nodens-rootless shell`: joins the namespaces of a living node by its holder's descriptor
 *
 * The caller itself enters, so that its terminal and its job control stay its own; only the process namespace takes a child. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"
#include "rootless/commands.h"
#include "rootless/node.h"
#include "sys/calls.h"

static struct nd_error *enter(const struct nd_node_record *record, int pidfd) {
        int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

        if (!nd_streq(record->net, "host"))
                flags |= CLONE_NEWNET;
        if (nd_sys->setns(pidfd, flags) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "enter the node");
        (void) syscall(SYS_setgroups, 0, nullptr);
        if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "become root of the node");
        return nullptr;
}

static int run_inside(const char *api, const char *name, const char *uid, const char *gid, char **words) {
        static char *const shell[] = {(char *) "/bin/sh", nullptr};
        nd_words environment = nd_settings_environment(environ, name, api, uid, gid); /* not freed: we execute */
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        siginfo_t end = {};
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return rootless_fail(nd_error_new(nd_code_of_errno(errno), errno, "start a process in the node"));
        if (pid == 0) {
                (void) !chdir("/root");
                environ = environment.items;
                (void) execvp(words ? words[0] : shell[0], words ? words : shell);
                (void) fprintf(stderr, "nodens-rootless: execute '%s': %s\n", words ? words[0] : shell[0], strerror(errno));
                _exit(127);
        }
        (void) signal(SIGINT, SIG_IGN);
        (void) signal(SIGQUIT, SIG_IGN);
        while (waitid(P_PID, (id_t) pid, &end, WEXITED) < 0 && errno == EINTR)
                ;
        nd_words_done(&environment);
        return end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status;
}

static struct nd_error *shell(const char *name, char **words, int *ret_code) {
        nd_cleanup(nd_node_done) struct nd_node node = ND_NODE_NONE;
        nd_cleanup(nd_node_record_done) struct nd_node_record record = {};
        nd_autofree char *api = nullptr, *uid = nd_format("%u", geteuid()), *gid = nd_format("%u", getegid());
        nd_autoclose int pidfd = -EBADF;

        nd_try(nd_node_open(name, false, &node));
        nd_try(nd_node_holder(&node, &record, &pidfd));
        api = nd_format("%s/api", node.path);
        nd_try(enter(&record, pidfd));
        *ret_code = run_inside(api, name, uid, gid, words);
        return nullptr;
}

int rootless_shell(void *settings, int operand_count, char **operands) {
        const struct nd_settings *given = settings;
        nd_autofree char **words = operand_count > 0 ? nd_calloc((size_t) operand_count + 1, sizeof *words) : nullptr;
        struct nd_error *error;
        int code = EXIT_FAILURE;

        if (words)
                memcpy(words, operands, (size_t) operand_count * sizeof *words);
        error = shell(given->name ? given->name : "default", words, &code);
        return error ? rootless_fail(error) : code;
}
