/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/attach.h"

#include <nodens.pb-c.h>

#include "cli/core/client.h"
#include "cli/core/exec-session.h"
#include "cli/core/running.h"
#include "cli/output/sanitize.h"
#include "net/protobuf.h"

const struct nd_option cli_attach_options[] = {
        {.name = "stdin",
         .letter = 'i',
         .offset = offsetof(struct cli_attach_settings, input),
         .help = "pass standard input to the container"},
        {.name = "container",
         .letter = 'c',
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_attach_settings, container),
         .argument = "NAME",
         .help = "container of the pod"},
        CLIENT_SOCKET_OPTION(cli_attach_settings),
        {},
};

static struct nd_error *ask_for_url(const struct cli_attach_settings *settings, char *container, char **ret,
                                    bool *ret_terminal) {
        Nodens__V1__AttachRequest request = NODENS__V1__ATTACH_REQUEST__INIT;
        ProtobufCMessage *message = nullptr;
        const Nodens__V1__AttachAnswer *answer;

        request.container = container;
        request.input = settings->input;
        nd_try(cli_client_call(settings->socket, "/nodens.v1.Node/Attach", &request.base,
                               &nodens__v1__attach_answer__descriptor, &message));
        answer = (const Nodens__V1__AttachAnswer *) message;
        *ret = nd_strdup(answer->url);
        *ret_terminal = answer->terminal;
        nd_protobuf_free(message);
        return nullptr;
}

static struct nd_error *attach(const struct cli_attach_settings *settings, const char *name) {
        nd_autofree char *container = nullptr, *url = nullptr;
        bool terminal = false;
        int code = 0;

        nd_try(cli_running_container(settings->socket, name, settings->container, &container));
        nd_try(ask_for_url(settings, container, &url, &terminal));
        if (terminal && settings->input && isatty(STDIN_FILENO))
                fputs("attached; Ctrl-P Ctrl-Q detaches, other keys go to the container\n", stderr);
        return cli_exec_session_run(
                &(struct cli_exec_session_settings) {
                        .url = url, .input = settings->input, .terminal = terminal, .attach = true},
                &code);
}

int cli_attach_run(void *settings_pointer, int operand_count, char **operands) {
        nd_autoerror struct nd_error *error = nullptr;

        if (operand_count != 1) {
                fputs("nodens attach: specify one container, as in 'nodens attach default/web'\n", stderr);
                return ND_EXIT_USAGE;
        }
        error = attach(settings_pointer, operands[0]);
        return error ? cli_sanitize_print_error("attach", error) : 0;
}
