/* SPDX-License-Identifier: Apache-2.0 */
/* attack-loop.c - a container's program that tries to make the runtime wait, or to hide from it
 *
 *   attack-loop fuse-root          a root that answers nothing: FUSE below an overlay, and chroot()
 *   into it
 *   attack-loop fuse-programs      the same over /bin, so that executing a program of the image
 *   waits
 *   attack-loop fuse-self          looks into that filesystem itself: the process cannot be killed
 *   attack-loop deep LEVELS MIB    a file of so many MiB below so many directories
 *   attack-loop move LEVELS MIB    the same, and the directory in the middle moves about forever,
 *   with another such file beside it
 *   attack-loop mounts COUNT       a mount table of so many lines
 *   attack-loop flood              output without an end, and without an end of line
 *   attack-loop zombie             the first thread ends, a second one stays
 *   attack-loop stop               stops itself
 * FUSE, overlay and mounts take CAP_SYS_ADMIN in the container's user namespace. Each writes
 * "ready" when it has done so, and stays. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fuse_fd;
static volatile int silent;

static void check(int result, const char *what) {
        if (result >= 0)
                return;
        printf("%s: %s\n", what, strerror(errno));
        exit(1);
}

[[noreturn]] static void stay(void) {
        printf("ready\n");
        for (;;)
                pause();
}

static void answer(uint64_t unique, int error, const void *bytes, size_t length) {
        struct fuse_out_header header = {.len = (uint32_t) (sizeof header + length), .error = error, .unique = unique};
        char message[1024];

        memcpy(message, &header, sizeof header);
        if (length > 0)
                memcpy(message + sizeof header, bytes, length);
        check((int) write(fuse_fd, message, header.len), "answer");
}

/* An empty directory, until it falls silent: then no name is found, nor not found. */
static void *serve([[maybe_unused]] void *userdata) {
        static char question[1 << 20];
        const struct fuse_in_header *header = (const void *) question;
        const struct fuse_init_out init = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 65536};
        const struct fuse_attr_out root = {.attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}};
        const struct fuse_statfs_out statfs = {.st = {.namelen = 255, .bsize = 4096}};

        for (;;) {
                if (read(fuse_fd, question, sizeof question) <= 0) {
                        if (errno == ENODEV)
                                return nullptr;
                        continue;
                }
                switch (header->opcode) {
                case FUSE_INIT:
                        answer(header->unique, 0, &init, sizeof init);
                        break;
                case FUSE_GETATTR:
                        answer(header->unique, 0, &root, sizeof root);
                        break;
                case FUSE_STATFS:
                        answer(header->unique, 0, &statfs, sizeof statfs);
                        break;
                case FUSE_LOOKUP:
                        if (!silent)
                                answer(header->unique, -ENOENT, nullptr, 0);
                        break;
                case FUSE_FORGET:
                case FUSE_BATCH_FORGET:
                case FUSE_INTERRUPT:
                        break;
                case FUSE_ACCESS:
                        answer(header->unique, 0, nullptr, 0);
                        break;
                default:
                        answer(header->unique, -ENOSYS, nullptr, 0);
                }
        }
}

/* An overlay looks names up as its mounter, so the rule of FUSE against other user namespaces does
 * not protect a reader outside. */
static void make_fuse(const char *place) {
        char options[128];
        pthread_t thread;

        (void) mkdir("/tmp", 0755);
        check(mount("none", "/tmp", "tmpfs", 0, nullptr), "tmpfs");
        check(mkdir("/tmp/fuse", 0755) | mkdir("/tmp/empty", 0755) | mkdir("/tmp/overlay", 0755), "mkdir");
        fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        check(fuse_fd, "/dev/fuse");
        snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse_fd);
        check(mount("hostile", "/tmp/fuse", "fuse", 0, options), "fuse");
        pthread_create(&thread, nullptr, serve, nullptr);
        check(mount("overlay", place, "overlay", 0, "lowerdir=/tmp/fuse:/tmp/empty,userxattr"), "overlay");
        silent = 1;
}

static void write_file(const char *name, long mib) {
        static char bytes[1 << 20];
        int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        memset(bytes, 'x', sizeof bytes);
        for (long i = 0; i < mib; i++)
                check(write(fd, bytes, sizeof bytes) == sizeof bytes ? 0 : -1, "write");
        check(fsync(fd) | close(fd), "sync");
}

static void go_down(long levels) {
        for (long i = 0; i < levels; i++)
                check(mkdir("d", 0755) | chdir("d"), "mkdir");
}

[[noreturn]] static void move_about(long levels, long mib) {
        int middle;

        go_down(levels / 2);
        middle = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        check(mkdir("elsewhere", 0755), "mkdir");
        write_file("beside", mib);
        go_down(levels / 2);
        write_file("big", mib);
        check(fchdir(middle), "fchdir");
        printf("ready\n");
        for (;;) {
                check(rename("d", "elsewhere/d"), "rename");
                check(rename("elsewhere/d", "d"), "rename back");
        }
}

static void make_mounts(long count) {
        char place[300];

        (void) mkdir("/tmp", 0755);
        check(mount("none", "/tmp", "tmpfs", 0, "nr_inodes=0"), "tmpfs");
        for (long i = 0; i < count; i++) {
                snprintf(place, sizeof place, "/tmp/%0200ld", i);
                check(mkdir(place, 0755), "mkdir");
                check(mount("none", place, "tmpfs", 0, "size=4k"), "mount");
        }
}

static void *outlive([[maybe_unused]] void *userdata) {
        stay();
}

int main(int argc, char **argv) {
        const char *what = argc > 1 ? argv[1] : "";
        long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;
        pthread_t thread;

        setvbuf(stdout, nullptr, _IONBF, 0);
        if (strcmp(what, "fuse-root") == 0) {
                check(mkdir("/newroot", 0755), "mkdir");
                make_fuse("/newroot");
                check(chroot("/newroot"), "chroot");
        } else if (strcmp(what, "fuse-programs") == 0) {
                make_fuse("/bin");
        } else if (strcmp(what, "fuse-self") == 0) {
                check(mkdir("/newroot", 0755), "mkdir");
                make_fuse("/newroot");
                printf("ready\n");
                (void) access("/newroot/file", F_OK);
        } else if (strcmp(what, "deep") == 0) {
                go_down(first);
                write_file("big", second);
        } else if (strcmp(what, "move") == 0) {
                move_about(first, second);
        } else if (strcmp(what, "mounts") == 0) {
                make_mounts(first);
        } else if (strcmp(what, "flood") == 0) {
                static char bytes[1 << 16];

                memset(bytes, 'x', sizeof bytes);
                for (;;)
                        (void) !write(STDOUT_FILENO, bytes, sizeof bytes);
        } else if (strcmp(what, "zombie") == 0) {
                pthread_create(&thread, nullptr, outlive, nullptr);
                syscall(SYS_exit, 0);
        } else if (strcmp(what, "stop") == 0) {
                printf("ready\n");
                raise(SIGSTOP);
        } else {
                printf("unknown: %s\n", what);
                return 2;
        }
        stay();
}
