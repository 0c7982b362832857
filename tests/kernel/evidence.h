/* SPDX-License-Identifier: Apache-2.0 */
/* evidence.h - how a kernel test reports what it saw
 *
 * A kernel test is a program that shows one behaviour the design leans on. It prints what it does
 * and what the kernel answered, and ends with 0 (as expected), 1 (not so) or 77 (cannot be tried
 * here, and why). */
#pragma once

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "sys/calls.h"
#include "sys/userns.h"

enum {
        SKIPPED = 77,
        SECOND_US = 1000000,
        BLOCK = 65536, /* the IDs of a pod; the first pod's are at POD_ROOT */
        POD_ROOT = 20 * BLOCK,
};

[[gnu::format(printf, 1, 2)]] static inline void saw(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        (void) vprintf(format, arguments);
        va_end(arguments);
        (void) putchar('\n');
        (void) fflush(stdout);
}

/* The test's claim. The text states the expectation, for readers of the log. */
#define expect(condition, ...)                                                                                                \
        do {                                                                                                                  \
                int _number = errno;                                                                                          \
                if (condition) {                                                                                              \
                        saw("  as expected: " __VA_ARGS__);                                                                   \
                } else {                                                                                                      \
                        saw("  NOT SO: " __VA_ARGS__);                                                                        \
                        saw("  (line %d, errno %d: %s)", __LINE__, _number, strerror(_number));                               \
                        exit(EXIT_FAILURE);                                                                                   \
                }                                                                                                             \
        } while (0)

/* A step on the way that must work for the test to mean anything. */
#define step(condition)                                                                                                       \
        do {                                                                                                                  \
                if (!(condition)) {                                                                                           \
                        saw("  the test itself went wrong: %s (line %d): %s", #condition, __LINE__, strerror(errno));         \
                        exit(EXIT_FAILURE);                                                                                   \
                }                                                                                                             \
        } while (0)

/* The same for functions of nodens. */
#define done(expression)                                                                                                      \
        do {                                                                                                                  \
                struct nd_error *_why = (expression);                                                                         \
                if (_why) {                                                                                                   \
                        saw("  the test itself went wrong: %s (line %d)", nd_error_text(_why), __LINE__);                     \
                        exit(EXIT_FAILURE);                                                                                   \
                }                                                                                                             \
        } while (0)

[[noreturn, gnu::format(printf, 1, 2)]] static inline void skip(const char *format, ...) {
        va_list arguments;

        (void) printf("skipped: ");
        va_start(arguments, format);
        (void) vprintf(format, arguments);
        va_end(arguments);
        (void) putchar('\n');
        exit(SKIPPED);
}

static inline void need_root(void) {
        if (geteuid() != 0)
                skip("needs root, and this is user %u", geteuid());
}

/* A user namespace of one pod: IDs 0..65535 are outside..outside + 65535. */
[[nodiscard]] static inline int make_pod_userns(uint32_t outside, bool charge_to_root) {
        struct nd_userns_map map = {.inside = 0, .outside = outside, .count = BLOCK};
        struct nd_userns_plan plan = {
                .uids = &map, .uid_count = 1, .gids = &map, .gid_count = 1, .charge_to_root = charge_to_root};
        int fd = -EBADF;

        done(nd_userns_make(&plan, &fd));
        return fd;
}

/* Runs a function in a child and returns its exit code; a test's expectations work in there too. */
[[nodiscard]] static inline int in_child(int (*function)(void *argument), void *argument) {
        int status;
        pid_t pid = fork();

        step(pid >= 0);
        if (pid == 0)
                exit(function(argument));
        step(waitpid(pid, &status, 0) == pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Becomes root of a user namespace: joins it and takes its IDs 0. */
static inline void enter_userns(int fd) {
        step(setns(fd, CLONE_NEWUSER) == 0);
        step(setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0);
}

static inline void write_file(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        step(fd >= 0);
        step(write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        step(close(fd) == 0);
}

static inline char *read_text(const char *path, char *buffer, size_t size) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        step(fd >= 0);
        n = read(fd, buffer, size - 1);
        step(n >= 0);
        buffer[n] = '\0';
        step(close(fd) == 0);
        return buffer;
}

/* A directory of the test's own on the filesystem that is to be tried; TEST_EXT4 is set by the
 * build. */
static inline char *scratch_directory(const char *beneath) {
        char *path = nd_format("%s/kernel-test-XXXXXX", beneath);

        step(mkdtemp(path));
        return path;
}
