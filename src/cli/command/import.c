/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/import.h"

#include <nodens.pb-c.h>
#include <stdio.h>

#include "cli/core/client.h"
#include "cli/core/pull-progress.h"
#include "cli/output/sanitize.h"

const struct nd_option cli_import_options[] = {
        {.name = "quiet",
         .letter = 'q',
         .offset = offsetof(struct cli_import_settings, quiet),
         .help = "print only the image ID"},
        CLIENT_SOCKET_OPTION(cli_import_settings),
        {},
};

int cli_import_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_import_settings *settings = settings_pointer;
        Nodens__V1__ImportRequest request = NODENS__V1__IMPORT_REQUEST__INIT;
        nd_autofree char *path = nullptr;

        if (operand_count != 1) {
                fputs("nodens import: specify one OCI archive, as in 'nodens import image.tar'\n", stderr);
                return ND_EXIT_USAGE;
        }
        path = realpath(operands[0], nullptr);
        if (!path) {
                nd_autoerror struct nd_error *error = nd_error_new(nd_error_code_of(errno), errno, "open '%s'", operands[0]);

                return cli_sanitize_print_error("import", error);
        }
        request.path = path;
        return cli_pull_progress_follow("import", settings->socket, "/nodens.v1.Node/Import", &request.base, settings->quiet);
}
