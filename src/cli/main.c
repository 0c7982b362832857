/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens, the command-line tool */
#include <locale.h>

#include "base/log.h"
#include "cli/program.h"

int main(int argc, char **argv) {
        (void) setlocale(LC_ALL, ""); /* libsmartcols measures text in the user's encoding */
        nd_log_open();
        return nd_option_run(&cli_program, argc, argv);
}
