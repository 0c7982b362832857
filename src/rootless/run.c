/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `nodens-rootless run`: one command in a node of its own
 *
 * Theory of operation
 *   The node dies with this process (PR_SET_PDEATHSIG in the holder), and this process ends when the command does, with its exit code.
 *   The command is a child of the holder with our own streams, in our session: a terminal works as if nothing stood between. What a
 *   terminal sends (Ctrl-C) reaches it by itself; other signals are handed on. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "rootless/commands.h"
#include "rootless/control.h"
#include "rootless/launch.h"
#include "rootless/parts.h"
#include "rootless/publish.h"
#include "rootless/supervise.h"
#include "sys/calls.h"

enum { START_US = 10 * 1000000 };

struct job {
        struct nd_choice choice;
        struct nd_node node;
        struct nd_node_record record;
        sd_event *loop;
        struct nd_supervisor *supervisor;
        struct nd_parts *parts;
        int pidfd;
        int control;
        int code;        /* what we end with */
        bool no_program; /* a shell's 127 */
};

static void job_done(struct job *job) {
        struct nd_error *error;

        nd_parts_end(job->parts);
        nd_supervisor_free(job->supervisor);
        if (job->pidfd >= 0) {
                siginfo_t end;

                (void) nd_sys->pidfd_send_signal(job->pidfd, SIGKILL, 0);
                (void) waitid(P_PIDFD, (id_t) job->pidfd, &end, WEXITED);
        }
        if (job->node.fd >= 0) {
                nd_node_clear(&job->node);
                error = nd_node_remove(&job->node);
                nd_error_free(error);
        }
        nd_close_fd(&job->pidfd);
        nd_close_fd(&job->control);
        sd_event_unref(job->loop);
        nd_node_record_done(&job->record);
        nd_node_done(&job->node);
        nd_choice_done(&job->choice);
}

static int on_ended([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct job *job = userdata;
        nd_cleanup(nd_control_done) struct nd_control message = {};
        nd_autoerror struct nd_error *error = nd_control_receive(fd, 1, &message);
        const char *code, *killed;
        uint64_t number = 0;

        if (error) {
                (void) fprintf(stderr, "nodens-rootless: the node ended before the command did\n");
                job->code = EXIT_FAILURE;
                return sd_event_exit(job->loop, 0);
        }
        if (!nd_streq(message.verb, "ended"))
                return 0; /* the answer to a signal */
        code = nd_control_get(&message, "code");
        killed = nd_control_get(&message, "signal");
        (void) !nd_parse_u64(code ? code : killed ? killed : "1", 255, &number);
        job->code = (int) (killed ? 128 + number : number);
        return sd_event_exit(job->loop, 0);
}

static int on_signal([[maybe_unused]] sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        struct job *job = userdata;
        nd_autotext text = ND_CONTROL_TEXT;
        nd_autofree char *number = nd_format("%u", si->ssi_signo);

        if ((si->ssi_signo == SIGINT || si->ssi_signo == SIGQUIT) && isatty(STDIN_FILENO))
                return 0;
        nd_control_begin(&text, "signal");
        nd_control_add(&text, "number", number);
        nd_error_free(nd_control_send(job->control, &text, nullptr, 0)); /* a node that ended tells so itself */
        return 0;
}

static const int handed_on[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2};

/* From before the command starts: whoever sees its first word may signal us at once. Not before the holder does, which would inherit it. */
static void hold_signals(void) {
        sigset_t mask;

        (void) sigemptyset(&mask);
        for (size_t i = 0; i < nd_count_of(handed_on); i++)
                (void) sigaddset(&mask, handed_on[i]);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
}

static int watch(struct job *job) {
        int r = sd_event_add_io(job->loop, nullptr, job->control, EPOLLIN, on_ended, job);

        for (size_t i = 0; r >= 0 && i < nd_count_of(handed_on); i++)
                r = sd_event_add_signal(job->loop, nullptr, handed_on[i], on_signal, job);
        return r;
}

static struct nd_error *start_command(struct job *job, int count, char **words) {
        static const int streams[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
        nd_autofree char *api = nd_format("%s/api", job->node.path), *uid = nd_format("%u", geteuid()),
                         *gid = nd_format("%u", getegid()), *directory = getcwd(nullptr, 0);
        nd_cleanup(nd_words_done) nd_words environment = nd_settings_environment(environ, job->choice.name, api, uid, gid);
        nd_autotext text = ND_CONTROL_TEXT;

        nd_control_begin(&text, "start");
        nd_control_add(&text, "leaf", "command");
        nd_control_add(&text, "directory", directory ? directory : "/");
        for (int i = 0; i < count; i++)
                nd_control_add(&text, "arg", words[i]);
        nd_vector_each (variable, &environment) {
                if (*variable)
                        nd_control_add(&text, "env", *variable);
        }
        nd_try(nd_node_connect(&job->node, &job->control));
        return nd_control_ask(job->control, &text, streams, nd_count_of(streams), START_US, nullptr);
}

static struct nd_error *work(struct job *job, const struct nd_settings *settings, int count, char **words) {
        struct nd_error *error;
        int r = sd_event_new(&job->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "make an event loop");
        nd_try(nd_settings_choose(settings, false, rootless_variable, nullptr, &job->choice));
        nd_try(nd_node_open(job->choice.name, true, &job->node));
        nd_try(nd_node_lock(&job->node));
        nd_try(nd_launch(&job->choice, &job->node, true, &job->record, &job->pidfd));
        if (job->choice.net != ND_NET_HOST)
                nd_try(nd_parts_start(job->loop, &job->node, &job->parts));
        nd_try(nd_supervisor_start(job->loop, &job->node, &job->record, &job->supervisor));
        if (settings->publish)
                nd_try(nd_publish_list(job->choice.name, settings->publish));
        hold_signals();
        error = start_command(job, count, words);
        job->no_program = nd_error_code(error) == ND_NOT_FOUND;
        nd_try(error);
        r = watch(job);
        if (r >= 0)
                r = sd_event_loop(job->loop);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the command") : nullptr;
}

int rootless_run(void *settings, int operand_count, char **operands) {
        nd_autofree char *name = nd_format("run-%d", (int) getpid());
        struct nd_settings given = *(struct nd_settings *) settings;
        struct job job = {.node = ND_NODE_NONE, .pidfd = -EBADF, .control = -EBADF};
        struct nd_error *error;
        int code;

        if (!given.name)
                given.name = name;
        if (given.dry_run) {
                error = rootless_explain(&given, false);
                return error ? rootless_fail(error) : EXIT_SUCCESS;
        }
        if (operand_count == 0)
                return rootless_fail(nd_error_new(ND_INVALID, 0, "run needs a command: nodens-rootless run -- COMMAND"));
        error = work(&job, &given, operand_count, operands);
        code = !error ? job.code : job.no_program ? 127 : EXIT_FAILURE;
        if (error)
                (void) rootless_fail(error);
        job_done(&job);
        return code;
}
