/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.c - nodens-fetch or nodens-unpack with one failing system call, selected by the
 * environment variable FAULT="CALL NTH ERRNO [onwards]"
 *
 * Linked with the program's own main(). The fault is armed before main() starts and counted across
 * all its processes; at the end standard error has "fault met", unless there were fewer such
 * calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <unit/faults.h>

static pid_t first;

[[gnu::constructor]] static void arm(void) {
        const char *wanted = getenv("FAULT");
        char name[32], onwards[16] = "";
        unsigned nth;
        int number;

        if (!wanted || sscanf(wanted, "%31s %u %d %15s", name, &nth, &number, onwards) < 3)
                return;
        for (int call = 0; call < FAULT_CALLS; call++)
                if (strcmp(fault_name((enum fault_call) call), name) == 0) {
                        first = getpid();
                        faults_arm((enum fault_call) call, nth, number, *onwards != '\0');
                        return;
                }
        (void) fprintf(stderr, "no such call: %s\n", name);
        exit(EXIT_FAILURE);
}

[[gnu::destructor]] static void report(void) {
        if (getpid() == first && faults_disarm())
                (void) fprintf(stderr, "fault met\n");
}
