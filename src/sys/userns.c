/* SPDX-License-Identifier: Apache-2.0 */
/* userns.c - see userns.h
 *
 * Theory of operation
 *   A child becomes the user that owns the new namespace, unshares, reports that on a pipe and
 *   waits. The parent, which has the privilege, writes the child's maps, opens its namespace and
 *   closes the pipe, which ends the child. Only the descriptor is left. The child's real IDs stay
 *   the caller's, so that the caller may signal and inspect it. */
#include "sys/userns.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"
#include "sys/calls.h"
#include "sys/file.h"

/* Raw system calls: libc's wrappers of set*id signal other threads through state that a raw clone
 * does not have. */
int nd_userns_enter_new(const struct nd_userns_plan *plan) {
        if (plan->charge_to_root && (syscall(SYS_setresgid, -1, plan->gids[0].outside, -1) < 0 ||
                                     syscall(SYS_setresuid, -1, plan->uids[0].outside, -1) < 0))
                return -errno;
        /* Changing IDs made us undumpable, and only host root could write /proc/<pid>/uid_map. */
        (void) prctl(PR_SET_DUMPABLE, 1);
        return nd_sys->unshare(CLONE_NEWUSER) < 0 ? -errno : 0;
}

/* The child's side. Reports 0 or an errno as one int, then lives until the parent closes its
 * end. */
[[noreturn]] static void child_main(const struct nd_userns_plan *plan, int report, int release) {
        int status;
        char byte;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        status = -nd_userns_enter_new(plan);
        (void) !write(report, &status, sizeof status);
        (void) !read(release, &byte, 1);
        _exit(EXIT_SUCCESS);
}

static struct nd_error *write_once(int procfd, const char *file, const char *text) {
        nd_autoclose int fd = nd_sys->openat(procfd, file, O_WRONLY | O_CLOEXEC, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open %s of a new user namespace", file);
        if (nd_sys->write(fd, text, strlen(text)) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "write %s of a new user namespace ('%s')", file, text);
        return nullptr;
}

static struct nd_error *write_map(int procfd, const char *file, const struct nd_userns_map *maps, size_t count) {
        nd_autotext struct nd_text text = ND_TEXT(4096);

        for (size_t i = 0; i < count; i++)
                nd_text_addf(&text, "%s%u %u %u", i > 0 ? "\n" : "", maps[i].inside, maps[i].outside, maps[i].count);
        if (text.overflow)
                return nd_error_new(ND_INVALID, 0, "%s of %zu lines exceeds the kernel's limit", file, count);
        return write_once(procfd, file, nd_text_get(&text));
}

struct nd_error *nd_userns_write_maps(const struct nd_userns_plan *plan, int procfd) {
        if (plan->deny_setgroups)
                nd_try(write_once(procfd, "setgroups", "deny"));
        nd_try(write_map(procfd, "uid_map", plan->uids, plan->uid_count));
        return write_map(procfd, "gid_map", plan->gids, plan->gid_count);
}

static struct nd_error *open_proc(pid_t pid, int *ret_fd) {
        char path[32];

        (void) snprintf(path, sizeof path, "/proc/%d", (int) pid);
        return nd_dir_open(AT_FDCWD, path, ret_fd);
}

/* The parent's side, while the child waits. */
static struct nd_error *map_and_open(const struct nd_userns_plan *plan, pid_t pid, int report, int *ret_fd) {
        nd_autoclose int procfd = -EBADF;
        int status = 0, fd;
        ssize_t n;

        do
                n = read(report, &status, sizeof status);
        while (n < 0 && errno == EINTR);
        if (n != sizeof status)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : 0, "the child that creates a user namespace exited early");
        if (status != 0)
                return nd_error_new(nd_error_code_of(status), status, "make a user namespace");

        nd_try(open_proc(pid, &procfd));
        nd_try(nd_userns_write_maps(plan, procfd));
        fd = nd_sys->openat(procfd, "ns/user", O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open a new user namespace");
        *ret_fd = fd;
        return nullptr;
}

struct nd_error *nd_userns_join(int fd) {
        /* Our supplementary groups would give access to host files inside. In a node without root
         * there may be none to drop. */
        if (syscall(SYS_setgroups, 0, nullptr) < 0 && errno != EPERM)
                return nd_error_new(nd_error_code_of(errno), errno, "drop supplementary groups");
        if (nd_sys->setns(fd, CLONE_NEWUSER) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "become root of a user namespace");
        return nullptr;
}

struct nd_error *nd_userns_make(const struct nd_userns_plan *plan, int *ret_fd) {
        nd_autoclose int report_read = -EBADF, report_write = -EBADF, release_read = -EBADF, release_write = -EBADF;
        nd_autoclose int pidfd = -EBADF;
        struct clone_args arguments = {.flags = CLONE_PIDFD, .exit_signal = SIGCHLD, .pidfd = (uintptr_t) &pidfd};
        struct nd_error *error;
        int report[2], release[2];
        siginfo_t end;
        pid_t pid;

        if (plan->uid_count == 0 || plan->gid_count == 0)
                return nd_error_new(ND_INVALID, 0, "a user namespace needs a uid and a gid map");
        if (nd_sys->pipe2(report, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create pipe");
        report_read = report[0];
        report_write = report[1];
        if (nd_sys->pipe2(release, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create pipe");
        release_read = release[0];
        release_write = release[1];

        pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (pid < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "start a child for a user namespace");
        if (pid == 0) {
                (void) close(release_write); /* or the child would wait for itself */
                child_main(plan, report_write, release_read);
        }
        nd_close_fd(&report_write);
        error = map_and_open(plan, pid, report_read, ret_fd);
        nd_close_fd(&release_write);
        (void) waitid(P_PIDFD, (id_t) pidfd, &end, WEXITED);
        return error;
}

/* Parses one field of a map line: digits up to a blank. Advances the text. */
static bool take_number(const char **text, uint32_t *ret) {
        size_t blanks = strspn(*text, " \t"), digits = strspn(*text + blanks, "0123456789");
        char word[16];

        if (digits == 0 || digits >= sizeof word)
                return false;
        memcpy(word, *text + blanks, digits);
        word[digits] = '\0';
        *text += blanks + digits;
        return nd_text_parse_u32(word, ret) == 0;
}

struct nd_error *nd_userns_maps_parse(const char *text, struct nd_userns_maps *ret) {
        nd_cleanup(nd_userns_maps_done) struct nd_userns_maps maps = {};

        for (size_t line = 1; *text; line++) {
                struct nd_userns_map map;

                if (!take_number(&text, &map.inside) || !take_number(&text, &map.outside) || !take_number(&text, &map.count) ||
                    map.count == 0)
                        return nd_error_new(ND_INVALID, 0, "invalid ID map line %zu: expected three numbers", line);
                text += strspn(text, " \t");
                if (*text != '\n' && *text != '\0')
                        return nd_error_new(ND_INVALID, 0, "invalid ID map line %zu: expected three numbers", line);
                if (maps.count == ND_ID_MAP_LINES)
                        return nd_error_new(ND_INVALID, 0, "ID map has more than %d lines", ND_ID_MAP_LINES);
                text += *text == '\n';
                nd_vector_push(&maps, map);
        }
        *ret = nd_take(maps, (struct nd_userns_maps) {});
        return nullptr;
}

struct nd_error *nd_userns_maps_own(const char *kind, struct nd_userns_maps *ret) {
        nd_autofree char *path = nd_format("/proc/self/%s_map", kind), *text = nullptr;

        nd_try(nd_file_read_kernel(path, 64 * 1024, &text));
        return nd_error_wrap(nd_userns_maps_parse(text, ret), "%s", path);
}

bool nd_userns_maps_identity(const struct nd_userns_maps *maps) {
        return maps->count == 1 && maps->items[0].inside == 0 && maps->items[0].outside == 0 &&
               maps->items[0].count == UINT32_MAX;
}
