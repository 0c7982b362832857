/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/import.h"

#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/client.h"
#include "cli/core/pull-progress.h"

const struct nd_option cli_import_options[] = {
        {.name = "quiet",
         .letter = 'q',
         .offset = offsetof(struct cli_import_settings, quiet),
         .help = "print only the image ID"},
        CLIENT_SOCKET_OPTION(cli_import_settings),
        {},
};

static int complain(const char *text) {
        fprintf(stderr, "nodens import: %s\n", text);
        return 1;
}

int cli_import_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_import_settings *settings = settings_pointer;
        Nodens__V1__ImportRequest request = NODENS__V1__IMPORT_REQUEST__INIT;
        nd_autofree char *path = nullptr;

        if (operand_count != 1)
                return complain("missing OCI archive, as in 'nodens import image.tar'");
        path = realpath(operands[0], nullptr);
        if (!path) {
                nd_autofree char *text = nd_format("%s: %s", operands[0], strerror(errno));

                return complain(text);
        }
        request.path = path;
        return cli_pull_progress_follow("import", settings->socket, "/nodens.v1.Node/Import", &request.base, settings->quiet);
}
