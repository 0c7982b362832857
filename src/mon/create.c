/* SPDX-License-Identifier: Apache-2.0 */
#include "mon/create.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/calls.h"

enum {
        EXIT_NOT_EXECUTED = 127,
        START_TIME_FIELD = 22,
};

/* The root of a mount namespace becomes root and working directory. */
static bool enter(int mount_namespace) {
        if (mount_namespace < 0 || nd_sys->setns(mount_namespace, CLONE_NEWNS) == 0)
                return true;
        (void) dprintf(STDERR_FILENO, "enter the OCI runtime's mount namespace: %s\n", strerrordesc_np(errno));
        return false;
}

[[noreturn]] static void run(char *const *argv, const struct mon_create_streams *streams, int mount_namespace) {
        sigset_t none;

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, nullptr);
        (void) signal(SIGPIPE, SIG_DFL);
        (void) setsid();
        if (dup2(streams->in, STDIN_FILENO) >= 0 && dup2(streams->out, STDOUT_FILENO) >= 0 &&
            dup2(streams->errors, STDERR_FILENO) >= 0 && enter(mount_namespace)) {
                (void) execvp(argv[0], argv);
                (void) dprintf(STDERR_FILENO, "execute '%s': %s\n", argv[0], strerrordesc_np(errno));
        }
        _exit(EXIT_NOT_EXECUTED);
}

struct nd_error *mon_create_start(char *const *argv, const struct mon_create_streams *streams, int mount_namespace,
                                  pid_t *ret) {
        struct clone_args arguments = {.exit_signal = SIGCHLD};
        pid_t pid = nd_sys->clone3(&arguments, sizeof arguments);

        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start '%s'", argv[0]);
        if (pid == 0)
                run(argv, streams, mount_namespace);
        *ret = pid;
        return nullptr;
}

void mon_stderr_tail_read(struct mon_stderr_tail *tail, int fd) {
        char piece[512];
        ssize_t n;

        while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)) {
                size_t length = n > 0 ? (size_t) n : 0;
                size_t keep = tail->length < sizeof tail->bytes - length ? tail->length : sizeof tail->bytes - length;

                memmove(tail->bytes, tail->bytes + tail->length - keep, keep);
                memcpy(tail->bytes + keep, piece, length);
                tail->length = keep + length;
        }
}

const char *mon_stderr_tail_last_line(const struct mon_stderr_tail *tail, size_t *ret_length) {
        size_t end = tail->length, start;

        while (end > 0 && (tail->bytes[end - 1] == '\n' || tail->bytes[end - 1] == ' '))
                end--;
        for (start = end; start > 0 && tail->bytes[start - 1] != '\n'; start--)
                ;
        *ret_length = end - start;
        return tail->bytes + start;
}

pid_t mon_create_read_pid(int directory, const char *name) {
        nd_autoclose int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char text[32] = {};
        uint64_t pid;
        ssize_t n;

        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof text - 1);
        if (n <= 0)
                return 0;
        text[strcspn(text, "\n")] = '\0';
        return nd_text_parse_u64(text, INT_MAX, &pid) < 0 ? 0 : (pid_t) pid;
}

uint64_t mon_create_parse_start_time(const char *text) {
        const char *at = strrchr(text, ')');
        uint64_t birth;
        char word[24];
        size_t length;

        if (!at)
                return 0;
        at++;
        for (int field = 3; field < START_TIME_FIELD; field++) {
                at += strspn(at, " ");
                at += strcspn(at, " ");
        }
        at += strspn(at, " ");
        length = strcspn(at, " \n");
        if (length >= sizeof word)
                return 0;
        memcpy(word, at, length);
        word[length] = '\0';
        return nd_text_parse_u64(word, UINT64_MAX, &birth) < 0 ? 0 : birth;
}

uint64_t mon_create_start_time(pid_t pid) {
        char path[32], text[1024];
        nd_autoclose int fd = -EBADF;
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%d/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        n = read(fd, text, sizeof text - 1);
        if (n <= 0)
                return 0;
        text[n] = '\0';
        return mon_create_parse_start_time(text);
}
