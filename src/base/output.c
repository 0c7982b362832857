/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void nd_output_open(void) {
        /* open() returns the lowest number that is free. */
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
                        (void) open("/dev/null", O_RDONLY);
}

int nd_output_close(const char *prefix, int status) {
        bool failed = ferror(stdout); /* an earlier write; its errno is gone */
        int reason = fflush(stdout) != 0 ? errno : 0;

        if (!failed && reason == 0)
                return status;
        clearerr(stdout);
        if (reason != EPIPE)
                fprintf(stderr, "%s: standard output: %s; the output is incomplete\n", prefix,
                        reason > 0 ? strerror(reason) : "a write failed");
        return ND_EXIT_OUTPUT;
}
