/* SPDX-License-Identifier: Apache-2.0 */
/* faulty.c - stands before a program that nodens-cri drives, and now and then fails or hangs in its
 * place
 *
 * It reads PATH-OF-ITSELF.faults, one line: the real program, then how often of a thousand times it
 * fails without having done anything, how often it does the work and fails, how often it hangs
 * before any work, and how often it hangs after it. A copy of this program stands in each place.
 * The file may be changed meanwhile: the next call reads it anew. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANGING = 3600, PATH_SIZE = 4096 };

struct faults {
        char program[PATH_SIZE];
        unsigned fails, fails_late, hangs, hangs_late;
};

static void read_faults(struct faults *ret) {
        char path[PATH_SIZE] = {};
        ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof ".faults");
        if (length < 0)
                exit(99);
        memcpy(path + length, ".faults", sizeof ".faults");

        FILE *file = fopen(path, "re");
        if (!file || fscanf(file, "%4095s %u %u %u %u", ret->program, &ret->fails, &ret->fails_late, &ret->hangs,
                            &ret->hangs_late) != 5)
                exit(98);
        fclose(file);
}

/* Does the work in a child and does not report the result. */
static void work(const char *program, char **argv) {
        pid_t child = fork();
        if (child == 0) {
                execv(program, argv);
                _exit(97);
        }
        while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR)
                ;
}

int main(int argc, char **argv) {
        struct faults faults = {};
        (void) argc;

        read_faults(&faults);
        uint32_t dice = 0;
        if (getrandom(&dice, sizeof dice, 0) < 0)
                return 96;
        dice %= 1000;

        unsigned limit = faults.fails;
        if (dice < limit) {
                fprintf(stderr, "a fault of the test: failed before any work\n");
                return 95;
        }
        limit += faults.fails_late;
        if (dice < limit) {
                work(faults.program, argv);
                fprintf(stderr, "a fault of the test: failed after the work\n");
                return 94;
        }
        limit += faults.hangs;
        if (dice < limit)
                return sleep(HANGING) ? 93 : 92;
        limit += faults.hangs_late;
        if (dice < limit) {
                work(faults.program, argv);
                return sleep(HANGING) ? 93 : 92;
        }
        execv(faults.program, argv);
        return 97;
}
