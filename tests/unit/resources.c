/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/resources.h>

#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

size_t resources_descriptors(void) {
        DIR *dir = opendir("/proc/self/fd");
        size_t count = 0;

        if (!dir)
                err(EXIT_FAILURE, "open '/proc/self/fd'");
        while (readdir(dir))
                count++;
        (void) closedir(dir);
        return count - 3; /* ".", ".." and the one we read with */
}

size_t resources_mounts(void) {
        FILE *file = fopen("/proc/self/mountinfo", "re");
        size_t lines = 0;
        int c;

        if (!file)
                err(EXIT_FAILURE, "open '/proc/self/mountinfo'");
        while ((c = getc(file)) != EOF)
                lines += c == '\n';
        if (ferror(file))
                err(EXIT_FAILURE, "read '/proc/self/mountinfo'");
        (void) fclose(file);
        return lines;
}

size_t resources_children(void) {
        size_t count = 0;
        pid_t pid;

        while ((pid = waitpid(-1, nullptr, WNOHANG)) > 0)
                count++;
        return count + (pid == 0); /* 0: there is one, and it lives */
}

bool resources_has_children(void) {
        siginfo_t info;

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}
