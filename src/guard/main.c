/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-guard: security context constraints with user namespaces, as admission for any
 * Kubernetes */
#include "base/log.h"
#include "guard/program.h"

int main(int argc, char **argv) {
        nd_log_open();
        return nd_option_run(&guard_program, argc, argv);
}
