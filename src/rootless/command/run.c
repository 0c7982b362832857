/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `nodens-rootless run`: one command in a node of its own
 *
 * Theory of operation
 *   The node dies with this process (PR_SET_PDEATHSIG in the holder), and this process ends when the command does, with its exit code.
 *   The holder starts the command, in a session of its own (session.h). Between its terminal and ours stands the console, which hands signals
 *   on as well (console.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "rootless/command/commands.h"
#include "rootless/core/control.h"
#include "rootless/network/supervisor.h"
#include "rootless/node/console.h"
#include "rootless/node/launch.h"
#include "rootless/node/services.h"
#include "rootless/ports/api-client.h"
#include "sys/calls.h"

enum { START_US = 10 * 1000000 };

struct job {
        struct nd_choice choice;
        struct nd_node node;
        struct nd_node_record record;
        sd_event *loop;
        struct nd_supervisor *supervisor;
        struct nd_parts *parts;
        struct nd_console *console;
        int pidfd;
        int control;
        int code;        /* what we end with */
        bool no_program; /* a shell's 127 */
};

static void job_done(struct job *job) {
        struct nd_error *error;

        nd_console_free(job->console);
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
                return 0;
        code = nd_control_get(&message, "code");
        killed = nd_control_get(&message, "signal");
        (void) !nd_parse_u64(code ? code : killed ? killed : "1", 255, &number);
        job->code = (int) (killed ? 128 + number : number);
        return sd_event_exit(job->loop, 0);
}

/* The command's streams and its monitor's pipes, as the holder expects them. */
static struct nd_error *send_start(struct job *job, struct nd_text *text) {
        struct nd_session session = {};
        int descriptors[ND_SESSION_STREAMS + 3];
        size_t count = 0;

        nd_console_session(job->console, &session);
        for (; count < ND_SESSION_STREAMS; count++)
                descriptors[count] = session.streams[count];
        descriptors[count++] = session.orders;
        descriptors[count++] = session.reports;
        if (session.terminal >= 0) {
                descriptors[count++] = session.terminal;
                nd_control_add(text, "terminal", "1");
        }
        if (session.foreground)
                nd_control_add(text, "foreground", "1");
        return nd_control_ask(job->control, text, descriptors, count, START_US, nullptr);
}

static struct nd_error *start_command(struct job *job, int count, char **words) {
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
        return send_start(job, &text);
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
        nd_try(rootless_console(&job->record, &job->console));
        /* Not before the holder is there, which would inherit it; and before the command is, whose first word may be answered by a signal. */
        nd_console_hold_signals(job->console);
        error = start_command(job, count, words);
        job->no_program = nd_error_code(error) == ND_NOT_FOUND;
        nd_try(error);
        nd_try(nd_console_start(job->console, job->loop));
        r = sd_event_add_io(job->loop, nullptr, job->control, EPOLLIN, on_ended, job);
        if (r >= 0)
                r = sd_event_loop(job->loop);
        nd_console_drain(job->console);
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
        job_done(&job); /* puts the terminal back */
        if (error)
                (void) rootless_fail(error);
        return code;
}
