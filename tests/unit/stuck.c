/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/stuck.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"

static void answer(int fd, uint64_t unique, int error, const void *bytes, size_t length) {
        char message[1024];
        struct fuse_out_header header = {.len = (uint32_t) (sizeof header + length), .error = error, .unique = unique};

        memcpy(message, &header, sizeof header);
        memcpy(message + sizeof header, bytes, length);
        (void) !write(fd, message, header.len);
}

/* Answers requests about its root, and leaves every other request unanswered. */
[[noreturn]] static void serve(int fd) {
        static char question[1 << 20];
        const struct fuse_in_header *header = (const void *) question;
        const struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 65536};
        const struct fuse_attr_out root = {.attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}};

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
                if (read(fd, question, sizeof question) <= 0 && errno == ENODEV)
                        _exit(0);
                if (header->opcode == FUSE_INIT)
                        answer(fd, header->unique, 0, &init, sizeof init);
                else if (header->opcode == FUSE_GETATTR)
                        answer(fd, header->unique, 0, &root, sizeof root);
        }
}

bool stuck_make(const char *directory, struct stuck *ret) {
        nd_autoclose int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        char options[64];

        (void) snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
        if (fd < 0 || mount("stuck", directory, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
                return false;
        ret->path = nd_strdup(directory);
        ret->server = fork();
        if (ret->server == 0)
                serve(fd);
        return ret->server > 0;
}

void stuck_release(struct stuck *stuck) {
        (void) kill(stuck->server, SIGKILL);
        (void) waitpid(stuck->server, nullptr, 0);
        (void) umount2(stuck->path, MNT_DETACH);
        free(stuck->path);
        *stuck = (struct stuck) {};
}
