/* SPDX-License-Identifier: Apache-2.0 */
/* takeover.c - see takeover.h */
#include "bridge/takeover.h"

#include <dirent.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"
#include "sys/calls.h"
#include "sys/file.h"

enum {
        STOP_S = 10, /* a thread that waits for the storage stops when it has its answer */
        PATH_LENGTH = 64,
        STAT_CEILING = 4096,
};

struct numbers {
        nd_vector(uint32_t) list;
};

static void numbers_done(struct numbers *numbers) {
        nd_vector_done(&numbers->list);
}

static int compare_numbers(const void *a, const void *b) {
        uint32_t first = *(const uint32_t *) a, second = *(const uint32_t *) b;

        return (first > second) - (first < second);
}

/* The entries of a directory that are numbers, sorted. */
static struct nd_error *list_numbers(const char *path, struct numbers *ret) {
        const struct dirent *entry;
        DIR *stream = opendir(path);
        uint32_t number;

        if (!stream)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", path);
        while ((entry = readdir(stream)))
                if (nd_text_parse_u32(entry->d_name, &number) == 0)
                        nd_vector_push(&ret->list, number);
        (void) closedir(stream);
        if (ret->list.count > 0)
                qsort(ret->list.items, ret->list.count, sizeof *ret->list.items, compare_numbers);
        return nullptr;
}

/* ---- the processes ---- */

static bool shares_descriptors(pid_t one, pid_t other) {
        return syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) == 0;
}

static bool has(const struct bridge_takeover *takeover, pid_t pid) {
        for (size_t i = 0; i < takeover->count; i++)
                if (takeover->pids[i] == pid)
                        return true;
        return false;
}

/* Stops the processes that share the descriptors and are not in the list yet. */
static struct nd_error *stop_others(struct bridge_takeover *takeover, bool *ret_found) {
        nd_cleanup(numbers_done) struct numbers all = {};

        *ret_found = false;
        nd_try(list_numbers("/proc", &all));
        nd_vector_each (number, &all.list) {
                pid_t pid = (pid_t) *number;
                int pidfd;

                if (has(takeover, pid) || !shares_descriptors(takeover->pids[0], pid))
                        continue;
                if (takeover->count == BRIDGE_TAKEOVER_MOST)
                        return nd_error_new(ND_EXHAUSTED, 0, "more than %d processes share the volume", BRIDGE_TAKEOVER_MOST);
                pidfd = pidfd_open(pid, 0);
                if (pidfd < 0)
                        continue; /* it has ended */
                takeover->pids[takeover->count] = pid;
                takeover->pidfds[takeover->count++] = pidfd;
                (void) nd_sys->pidfd_send_signal(pidfd, SIGSTOP, 0);
                *ret_found = true;
        }
        return nullptr;
}

/* Whether none of its threads runs, or will. */
static bool is_stopped(pid_t pid) {
        nd_cleanup(numbers_done) struct numbers threads = {};
        char path[PATH_LENGTH];

        (void) snprintf(path, sizeof path, "/proc/%d/task", pid);
        nd_ignore(list_numbers(path, &threads));
        nd_vector_each (thread, &threads.list) {
                nd_autofree char *text = nullptr;
                const char *end;

                (void) snprintf(path, sizeof path, "/proc/%d/task/%u/stat", pid, *thread);
                nd_ignore(nd_file_read_kernel(path, STAT_CEILING, &text));
                end = text ? strrchr(text, ')') : nullptr;
                if (end && strlen(end) > 2 && !strchr("TZX", end[2]))
                        return false;
        }
        return true;
}

static struct nd_error *stop(struct bridge_takeover *takeover) {
        uint64_t deadline = nd_clock_us() + STOP_S * ND_SECOND_US;
        bool found = true;

        while (found) {
                nd_try(stop_others(takeover, &found));
                for (size_t i = 0; i < takeover->count; i++)
                        while (!is_stopped(takeover->pids[i])) {
                                if (nd_clock_us() > deadline)
                                        return nd_error_new(ND_DEADLINE, 0, "the volume's storage does not respond");
                                (void) poll(nullptr, 0, 1);
                        }
        }
        return nullptr;
}

void bridge_takeover_end(struct bridge_takeover *takeover, int signal) {
        for (size_t i = 0; i < takeover->count; i++) {
                (void) nd_sys->pidfd_send_signal(takeover->pidfds[i], signal, 0);
                nd_close_fd(&takeover->pidfds[i]);
        }
        takeover->count = 0;
}

/* ---- descriptors ---- */

/* Finds the state's descriptor by its name, and maps the state. */
static struct nd_error *map_state(pid_t pid, int pidfd, const struct numbers *fds, struct bridge_state *ret) {
        static const char wanted[] = "/memfd:nodens-bridge (deleted)";

        nd_vector_each (number, &fds->list) {
                char path[PATH_LENGTH], link[sizeof wanted];
                nd_autoclose int fd = -EBADF;
                ssize_t length;

                (void) snprintf(path, sizeof path, "/proc/%d/fd/%u", pid, *number);
                length = readlink(path, link, sizeof link);
                if (length != sizeof wanted - 1 || memcmp(link, wanted, (size_t) length) != 0)
                        continue;
                fd = pidfd_getfd(pidfd, (int) *number, 0);
                if (fd < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "get the state");
                nd_try(bridge_state_map(fd, ret));
                ret->fd = (int) *number;
                return nullptr;
        }
        return nd_error_new(ND_INVALID, 0, "process %d serves no volume", pid);
}

/* Moves our own descriptors out of the way. */
static struct nd_error *move_above(struct bridge_takeover *takeover, uint32_t top) {
        for (size_t i = 0; i < takeover->count; i++) {
                int moved = fcntl(takeover->pidfds[i], F_DUPFD_CLOEXEC, (int) top + 1);

                if (moved < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "move a descriptor");
                nd_close_fd(&takeover->pidfds[i]);
                takeover->pidfds[i] = moved;
        }
        return nullptr;
}

/* In ascending order: the kernel gives a copy its number, or a lower one, which is freed again. */
static struct nd_error *copy(int pidfd, const struct numbers *fds) {
        nd_vector_each (number, &fds->list) {
                int wanted = (int) *number, fd;

                if (wanted <= STDERR_FILENO)
                        continue;
                fd = pidfd_getfd(pidfd, wanted, 0);
                if (fd < 0 || (fd != wanted && dup3(fd, wanted, O_CLOEXEC) < 0))
                        return nd_error_new(nd_error_code_of(errno), errno, "copy descriptor %d", wanted);
                if (fd != wanted)
                        (void) close(fd);
        }
        return nullptr;
}

static struct nd_error *begin(pid_t pid, struct bridge_state *ret_state, struct bridge_takeover *takeover) {
        nd_cleanup(numbers_done) struct numbers before = {}, fds = {};
        char path[PATH_LENGTH];

        if (!shares_descriptors(pid, pid))
                return nd_error_new(nd_error_code_of(errno), errno, "compare processes (kcmp)");
        (void) snprintf(path, sizeof path, "/proc/%d/fd", pid);
        nd_try(list_numbers(path, &before));
        nd_try(map_state(pid, takeover->pidfds[0], &before, ret_state));
        (void) nd_sys->pidfd_send_signal(takeover->pidfds[0], SIGSTOP, 0);
        nd_try(stop(takeover));
        nd_try(list_numbers(path, &fds));
        if (fds.list.count == 0)
                return nd_error_new(ND_PRECONDITION, 0, "the process has ended");
        nd_try(move_above(takeover, fds.list.items[fds.list.count - 1]));
        return copy(takeover->pidfds[0], &fds);
}

struct nd_error *bridge_takeover_begin(pid_t pid, struct bridge_state *ret_state, struct bridge_takeover *ret) {
        struct nd_error *error;

        *ret = (struct bridge_takeover) {.pids = {pid}, .pidfds = {pidfd_open(pid, 0)}, .count = 1};
        if (ret->pidfds[0] < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open process %d", pid);
        error = begin(pid, ret_state, ret);
        if (error)
                bridge_takeover_end(ret, SIGCONT);
        return error;
}
