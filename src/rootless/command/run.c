/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - `nodens-rootless run`: runs one command in a node of its own
 *
 * Theory of operation
 *   The node dies with this process (PR_SET_PDEATHSIG in init), and this process exits when the
 *   command does, with its exit status.
 *   Init starts the command in a session of its own (session.h). The console copies between the
 *   command's terminal and ours, and forwards signals (console.h). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "rootless/command/commands.h"
#include "rootless/core/control.h"
#include "rootless/network/supervisor.h"
#include "rootless/node/console.h"
#include "rootless/node/launch.h"
#include "rootless/node/services.h"
#include "rootless/ports/api-client.h"
#include "sys/calls.h"

static constexpr uint64_t start_timeout_us = 10 * ND_SECOND_US;

struct job {
        struct rootless_config config;
        struct rootless_node node;
        struct rootless_node_record record;
        sd_event *loop;
        struct rootless_supervisor *supervisor;
        struct rootless_services *services;
        struct rootless_console *console;
        int pidfd;
        int control;
        int code;        /* our exit status */
        bool no_program; /* exit with 127, as a shell does */
};

static void job_done(struct job *job) {
        rootless_console_free(job->console);
        rootless_services_end(job->services);
        rootless_supervisor_free(job->supervisor);
        if (job->pidfd >= 0) {
                siginfo_t end;

                (void) nd_sys->pidfd_send_signal(job->pidfd, SIGKILL, 0);
                (void) waitid(P_PIDFD, (id_t) job->pidfd, &end, WEXITED);
        }
        if (job->node.fd >= 0) {
                rootless_node_clear(&job->node);
                /* The next node of this name reuses a directory that cannot be removed. */
                nd_ignore(rootless_node_remove(&job->node));
        }
        nd_close_fd(&job->pidfd);
        nd_close_fd(&job->control);
        sd_event_unref(job->loop);
        rootless_node_record_done(&job->record);
        rootless_node_done(&job->node);
        rootless_config_done(&job->config);
}

static int on_ended([[maybe_unused]] sd_event_source *source, int fd, [[maybe_unused]] uint32_t events, void *userdata) {
        struct job *job = userdata;
        nd_cleanup(rootless_control_done) struct rootless_control message = {};
        nd_autoerror struct nd_error *error = rootless_control_receive(fd, 1, &message);
        const char *code, *killed;
        uint64_t number = 0;

        if (error) {
                (void) fprintf(stderr, "nodens-rootless: the node ended before the command\n");
                job->code = EXIT_FAILURE;
                return sd_event_exit(job->loop, 0);
        }
        if (!nd_streq(message.verb, "ended"))
                return 0;
        code = rootless_control_get(&message, "code");
        killed = rootless_control_get(&message, "signal");
        (void) !nd_text_parse_u64(code ? code : killed ? killed : "1", 255, &number);
        job->code = (int) (killed ? 128 + number : number);
        return sd_event_exit(job->loop, 0);
}

/* Sends the command's streams and the pipes to its monitor, in the order that init expects. */
static struct nd_error *send_start(struct job *job, struct nd_text *text) {
        struct rootless_session session = {};
        int descriptors[SESSION_STREAMS + 3];
        size_t count = 0;

        rootless_console_session(job->console, &session);
        for (; count < SESSION_STREAMS; count++)
                descriptors[count] = session.streams[count];
        descriptors[count++] = session.orders;
        descriptors[count++] = session.reports;
        if (session.terminal >= 0) {
                descriptors[count++] = session.terminal;
                rootless_control_add(text, "terminal", "1");
        }
        if (session.foreground)
                rootless_control_add(text, "foreground", "1");
        return rootless_control_call(job->control, text, descriptors, count, start_timeout_us, nullptr);
}

static struct nd_error *start_command(struct job *job, int count, char **words) {
        nd_autofree char *api = nd_format("%s/api", job->node.path), *uid = nd_format("%u", geteuid()),
                         *gid = nd_format("%u", getegid()), *directory = getcwd(nullptr, 0);
        nd_cleanup(nd_strings_done) struct nd_strings environment =
                rootless_config_environment(environ, job->config.name, api, uid, gid);
        nd_autotext struct nd_text text = CONTROL_TEXT;

        rootless_control_begin(&text, "start");
        rootless_control_add(&text, "leaf", "command");
        rootless_control_add(&text, "directory", directory ? directory : "/");
        for (int i = 0; i < count; i++)
                rootless_control_add(&text, "arg", words[i]);
        nd_vector_each (variable, &environment) {
                if (*variable)
                        rootless_control_add(&text, "env", *variable);
        }
        nd_try(rootless_node_connect(&job->node, &job->control));
        return send_start(job, &text);
}

static struct nd_error *work(struct job *job, const struct rootless_settings *settings, int count, char **words) {
        static const struct rootless_service_plan services[] = {{.command = "forward"}, {.command = "api"}};
        nd_cleanup(rootless_ids_done) struct rootless_ids ids = {};
        struct nd_error *error;
        int r = sd_event_new(&job->loop);

        if (r < 0)
                return nd_error_new(ND_INTERNAL, -r, "create an event loop");
        nd_try(rootless_config_resolve(settings, false, rootless_command_getenv, nullptr, &job->config));
        nd_try(rootless_node_open(job->config.name, true, &job->node));
        nd_try(rootless_node_lock(&job->node));
        nd_try(rootless_ids_find(job->config.inside, &ids));
        nd_try(rootless_launch_node(&job->config, &job->node, true, &ids, nullptr, &job->record, &job->pidfd));
        if (job->config.net != NET_DRIVER_HOST)
                nd_try(rootless_services_start(job->loop, &job->node, services, nd_count_of(services), &job->services));
        nd_try(rootless_supervisor_start(job->loop, &job->node, &job->record, &job->supervisor));
        if (settings->publish)
                nd_try(rootless_api_publish_list(job->config.name, settings->publish));
        nd_try(rootless_console_open(&job->record, &job->console));
        /* Not before init exists, because it would inherit the mask; but before the command exists,
         * because a signal may follow its first output. */
        rootless_console_block_signals(job->console);
        error = start_command(job, count, words);
        job->no_program = nd_error_code(error) == ND_NOT_FOUND;
        nd_try(error);
        nd_try(rootless_console_start(job->console, job->loop));
        r = sd_event_add_io(job->loop, nullptr, job->control, EPOLLIN, on_ended, job);
        if (r >= 0)
                r = sd_event_loop(job->loop);
        rootless_console_drain(job->console);
        return r < 0 ? nd_error_new(ND_INTERNAL, -r, "wait for the command") : nullptr;
}

int rootless_command_run(void *settings, int operand_count, char **operands) {
        nd_autofree char *name = nd_format("run-%d", (int) getpid());
        struct rootless_settings given = *(struct rootless_settings *) settings;
        struct job job = {.node = NODE_NONE, .pidfd = -EBADF, .control = -EBADF};
        struct nd_error *error;
        int code;

        if (!given.name)
                given.name = name;
        if (given.dry_run) {
                error = rootless_command_explain(&given, false);
                return error ? rootless_command_fail(error) : EXIT_SUCCESS;
        }
        if (operand_count == 0)
                return rootless_command_fail(nd_error_new(ND_INVALID, 0, "missing command: nodens-rootless run -- COMMAND"));
        error = work(&job, &given, operand_count, operands);
        code = !error ? job.code : job.no_program ? 127 : EXIT_FAILURE;
        job_done(&job); /* restores the terminal */
        if (error)
                (void) rootless_command_fail(error);
        return code;
}
