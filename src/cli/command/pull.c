/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/pull.h"

#include <fcntl.h>
#include <nodens.pb-c.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/client.h"
#include "cli/core/pull-progress.h"
#include "cli/output/sanitize.h"
#include "sys/file.h"

const struct nd_option cli_pull_options[] = {
        {.name = "credentials",
         .kind = ND_OPTION_TEXT,
         .offset = offsetof(struct cli_pull_settings, credentials),
         .argument = "FILE",
         .values = ND_VALUES_FILE,
         .help = "file with 'user:password' for the registry"},
        {.name = "quiet",
         .letter = 'q',
         .offset = offsetof(struct cli_pull_settings, quiet),
         .help = "print only the image ID"},
        CLIENT_SOCKET_OPTION(cli_pull_settings),
        {},
};

/* Reads "user:password" from a file; not from the command line, which every user of the host can
 * read. */
static struct nd_error *read_credentials(const char *path, Nodens__V1__PullRequest *request, char **ret_text) {
        char *colon;

        nd_try(nd_file_read(AT_FDCWD, path, 64 << 10, ret_text, nullptr));
        (*ret_text)[strcspn(*ret_text, "\n")] = '\0';
        colon = strchr(*ret_text, ':');
        if (!colon)
                return nd_error_new(ND_INVALID, 0, "'%s' does not contain 'user:password'", path);
        *colon = '\0';
        request->username = *ret_text;
        request->password = colon + 1;
        return nullptr;
}

int cli_pull_run(void *settings_pointer, int operand_count, char **operands) {
        const struct cli_pull_settings *settings = settings_pointer;
        Nodens__V1__PullRequest request = NODENS__V1__PULL_REQUEST__INIT;
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *credentials = nullptr;

        if (operand_count != 1) {
                fputs("nodens pull: specify one image, as in 'nodens pull docker.io/library/busybox:1.37'\n", stderr);
                return ND_EXIT_USAGE;
        }
        if (settings->credentials)
                error = read_credentials(settings->credentials, &request, &credentials);
        if (error)
                return cli_sanitize_print_error("pull", error);
        request.reference = operands[0];
        return cli_pull_progress_follow("pull", settings->socket, "/nodens.v1.Node/Pull", &request.base, settings->quiet);
}
