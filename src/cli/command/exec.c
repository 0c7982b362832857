/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/exec.h"

#include <nodens.pb-c.h>

#include "cli/core/client.h"
#include "cli/core/exec-session.h"
#include "cli/core/running.h"
#include "cli/output/sanitize.h"
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

        nd_try(cli_running_container(settings->socket, operands[0], settings->container, &container));
        nd_try(ask_for_url(settings, container, operands + 1, (size_t) count - 1, &url));
        return cli_exec_session_run(
                &(struct cli_exec_session_settings) {.url = url, .input = settings->input, .terminal = settings->terminal},
                ret_code);
}

int cli_exec_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_exec_settings *settings = settings_pointer;
        nd_autoerror struct nd_error *error = nullptr;
        int code = EXIT_OWN;

        if (operand_count < 2) {
                fputs("nodens exec: missing container or command, as in 'nodens exec -it default/web sh'\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->terminal && settings->input && !isatty(STDIN_FILENO))
                fputs("nodens exec: standard input is not a terminal; the command gets one nevertheless\n", stderr);
        error = execute(settings, operand_count, operands, &code);
        if (error)
                (void) cli_sanitize_print_error("exec", error);
        return code; /* with an error EXIT_OWN, or the status of a command that does not start */
}
