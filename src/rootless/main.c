/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-rootless: runs a whole node as an ordinary user */
#include "base/log.h"
#include "rootless/command/commands.h"

int main(int argc, char **argv) {
        nd_log_open();
        return nd_option_run(&rootless_program, argc, argv);
}
