/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens, the command-line tool */
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/program.h"

int main(int argc, char **argv) {
        static char buffer[64 << 10];

        /* Most outputs fit, so that one write at the end reports why it fails. */
        if (!isatty(STDOUT_FILENO))
                (void) setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
        (void) setlocale(LC_ALL, ""); /* libsmartcols measures text in the user's encoding */
        nd_log_open();
        return nd_option_run(&cli_program, argc, argv);
}
