/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/exec.h"

#include <nodens.pb-c.h>
#include <string.h>

#include "base/clock.h"
#include "cli/core/client.h"
#include "cli/core/exec-session.h"
#include "cli/core/format.h"
#include "cli/core/sanitize.h"
#include "cli/core/target.h"
#include "net/protobuf.h"

enum {
        EXIT_OWN = 125, /* our own failure, distinct from the command's exit status */
};

const struct nd_option cli_exec_options[] = {
        {.name = "stdin",
         .letter = 'i',
         .offset = offsetof(struct cli_exec_settings, input),
         .help = "pass standard input to the command"},
        {.name = "tty",
         .letter = 't',
         .offset = offsetof(struct cli_exec_settings, terminal),
         .help = "allocate a terminal for the command"},
        {.name = "container",
         .letter = 'c',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_exec_settings, container),
         .argument = "NAME",
         .help = "container of the pod"},
        CLIENT_SOCKET_OPTION(cli_exec_settings),
        {},
};

static struct nd_error *require_running(const struct cli_target *target) {
        const Nodens__V1__ContainerEntry *container = target->container;
        nd_autofree char *pod = cli_target_pod_name(target->pod), *name = cli_sanitize_text(container->name);
        char age[FORMAT_AGE];

        if (strcmp(container->state, "running") == 0)
                return nullptr;
        if (strcmp(container->state, "exited") != 0)
                return nd_error_new(ND_PRECONDITION, 0, "container %s/%s is not running: its state is %s", pod, name,
                                    container->state);
        return nd_error_new(ND_PRECONDITION, 0, "container %s/%s exited %s ago with status %d; see 'nodens logs %s/%s'", pod,
                            name, cli_format_age(container->finished_at, nd_clock_wall_ns(), age), container->exit_code, pod,
                            name);
}

/* Returns the ID of the selected container, which the caller frees. */
static struct nd_error *find_container(const struct cli_exec_settings *settings, const char *name, char **ret) {
        Nodens__V1__PodsRequest request = NODENS__V1__PODS_REQUEST__INIT;
        ProtobufCMessage *answer = nullptr;
        struct cli_target target = {};
        struct nd_error *error;

        nd_try(cli_client_call(settings->socket, "/nodens.v1.Node/Pods", &request.base, &nodens__v1__pods_answer__descriptor,
                               &answer));
        error = cli_target_container((const Nodens__V1__PodsAnswer *) answer, name, settings->container, false, &target);
        if (!error)
                error = require_running(&target);
        if (!error)
                *ret = nd_strdup(target.container->id);
        nd_protobuf_free(answer);
        return error;
}

static struct nd_error *ask_for_url(const struct cli_exec_settings *settings, char *container, char **command, size_t words,
                                    char **ret) {
        Nodens__V1__ExecRequest request = NODENS__V1__EXEC_REQUEST__INIT;
        ProtobufCMessage *answer = nullptr;

        request.container = container;
        request.command = command;
        request.n_command = words;
        request.input = settings->input;
        request.terminal = settings->terminal;
        nd_try(cli_client_call(settings->socket, "/nodens.v1.Node/Exec", &request.base, &nodens__v1__exec_answer__descriptor,
                               &answer));
        *ret = nd_strdup(((const Nodens__V1__ExecAnswer *) answer)->url);
        nd_protobuf_free(answer);
        return nullptr;
}

static struct nd_error *execute(const struct cli_exec_settings *settings, int count, char **operands, int *ret_code) {
        nd_autofree char *container = nullptr, *url = nullptr;

        nd_try(find_container(settings, operands[0], &container));
        nd_try(ask_for_url(settings, container, operands + 1, (size_t) count - 1, &url));
        return cli_exec_session_run(
                &(struct cli_exec_session_settings) {.url = url, .input = settings->input, .terminal = settings->terminal},
                ret_code);
}

int cli_exec_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_exec_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;
        int code = 0;

        if (operand_count < 2) {
                fputs("nodens exec: missing container or command, as in 'nodens exec -it default/web sh'\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->terminal && settings->input && !isatty(STDIN_FILENO))
                fputs("nodens exec: standard input is not a terminal; the command gets one nevertheless\n", stderr);
        error = execute(settings, operand_count, operands, &code);
        if (error) {
                nd_autofree char *text = cli_sanitize_text(nd_error_text(error));

                fprintf(stderr, "nodens exec: %s\n", text);
                return EXIT_OWN;
        }
        return code;
}
