/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - nodens-unpack: unpacks the layers that nodens-fetch downloads, and computes their chain
 * IDs
 *
 *      descriptor  1  events, JSON lines (events.h): the daemon trusts these
 *                  2  messages for the log
 *                  3  the channel to nodens-fetch (protocol/messages.h)
 *                  4  this pull's unpack/: unfinished and finished trees
 *                  5  the store's layers/, read-only
 *
 * Exit status 0 after the event "synced". This process starts the supervisor in its own namespaces,
 * and waits for it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pull/jail/jail.h"
#include "pull/unpack/supervisor.h"
#include "sys/calls.h"

enum {
        EVENTS_FD = 1,
        CHANNEL_FD = 3,
        UNPACK_FD = 4,
        LAYERS_FD = 5,
};

static struct nd_error *check_descriptors(void) {
        struct stat st;

        for (int fd = CHANNEL_FD; fd <= LAYERS_FD; fd++)
                if (fstat(fd, &st) < 0 || (fd == CHANNEL_FD ? !S_ISSOCK(st.st_mode) : !S_ISDIR(st.st_mode)))
                        return nd_error_new(ND_INVALID, 0, "descriptor %d must be a %s: nodens-cri starts this program", fd,
                                            fd == CHANNEL_FD ? "socket" : "directory");
        return nullptr;
}

static struct nd_error *start(const struct pull_events *events, int *ret_pidfd) {
        nd_autoclose int userns_fd = -EBADF;
        struct clone_args arguments = {
                .flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
                .exit_signal = SIGCHLD,
                .pidfd = (uintptr_t) ret_pidfd,
        };
        pid_t pid;

        nd_try(check_descriptors());
        nd_try(pull_jail_open_userns(&userns_fd));
        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(
                        nd_error_code_of(errno), errno,
                        "start the unpacker (nodens-unpack needs root, or root of a rootless node's user namespace)");
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                pull_supervisor_main(CHANNEL_FD, UNPACK_FD, LAYERS_FD, userns_fd, events);
        }
        return nullptr;
}

int main(void) {
        const struct pull_events events = {.fd = EVENTS_FD};
        nd_autoerror struct nd_error *error = nullptr;
        nd_autoclose int pidfd = -EBADF;
        siginfo_t end = {};

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        error = start(&events, &pidfd);
        if (error) {
                pull_event_error(&events, error);
                return EXIT_FAILURE;
        }
        for (int fd = CHANNEL_FD; fd <= LAYERS_FD; fd++)
                /* held by the supervisor alone: the channel closes when it exits */
                (void) close(fd);
        while (waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED) < 0 && errno == EINTR)
                ;
        return end.si_code == CLD_EXITED ? end.si_status : EXIT_FAILURE;
}
