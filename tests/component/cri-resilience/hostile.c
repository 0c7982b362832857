/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.c - root of a container with SYS_ADMIN and /dev/fuse that does everything to make the
 * runtime wait; linked statically
 *
 *      hostile READY ACTION...
 *
 * Each action is done by a child, in this order, and holds until the container ends; the file READY
 * is made when all are under way.
 *      fuse     mounts FUSE, answers nothing, lays an overlay over it and makes that the root of a
 *      process
 *      hang     has processes that wait for that filesystem: by stat, by their working directory,
 *      by an open file
 *      deep     nests 4,500 directories and puts a file at the bottom
 *      wide     makes 20,000 names in one directory
 *      mounts   makes 1,000 mounts with long names
 *      pipes    writes to standard output and error as fast as it can, without ends of lines
 *      stop     has processes that stop themselves
 *      fifos    puts fifos in the place of files that a runtime may read, and links to the host's
 *      paths in the place of directories
 *      rename   exchanges two directories of a tree forever
 *      forks    has children that come and go, and zombies */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 4500, WIDTH = 20000, MOUNTS = 1000 };

static int ready[2];          /* a byte for each action that is under way */
static volatile bool *silent; /* the filesystem's server answers no more; shared with it */

static void under_way(void) {
        (void) !write(ready[1], "x", 1);
}

[[noreturn]] static void rest(void) {
        for (;;)
                (void) pause();
}

static void reply(int fd, uint64_t unique, int error, const void *body, size_t length) {
        char bytes[256];
        struct fuse_out_header header = {.unique = unique, .error = error, .len = (uint32_t) (sizeof header + length)};

        memcpy(bytes, &header, sizeof header);
        if (length > 0)
                memcpy(bytes + sizeof header, body, length);
        (void) !write(fd, bytes, header.len);
}

/* Answers until the filesystem is mounted everywhere, and then nothing. */
static void serve(int fd) {
        static char bytes[1 << 20];
        const struct fuse_in_header *header = (const void *) bytes;

        for (;;) {
                ssize_t n = read(fd, bytes, sizeof bytes);

                if (n <= 0 && errno != EINTR)
                        rest();
                if (*silent && header->opcode == FUSE_LOOKUP)
                        continue;
                if (header->opcode == FUSE_INIT) {
                        struct fuse_init_out out = {.major = 7, .minor = 31, .max_readahead = 4096, .max_write = 65536};

                        reply(fd, header->unique, 0, &out, sizeof out);
                } else if (header->opcode == FUSE_GETATTR && header->nodeid == 1) {
                        struct fuse_attr_out out = {.attr = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 2}};

                        reply(fd, header->unique, 0, &out, sizeof out);
                } else if (header->opcode == FUSE_STATFS) {
                        struct fuse_statfs_out out = {.st = {.namelen = 255, .bsize = 4096}};

                        reply(fd, header->unique, 0, &out, sizeof out);
                } else if (header->opcode == FUSE_ACCESS)
                        reply(fd, header->unique, 0, nullptr, 0);
                else if (header->opcode != FUSE_FORGET && header->opcode != FUSE_BATCH_FORGET &&
                         header->opcode != FUSE_INTERRUPT)
                        reply(fd, header->unique, header->opcode == FUSE_LOOKUP ? -ENOENT : -ENOSYS, nullptr, 0);
        }
}

static void fuse(void) {
        int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
        char options[128];

        (void) snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
        (void) mkdir("/mnt", 0755);
        if (fd < 0 || mount("hostile", "/mnt", "fuse", 0, options) < 0) {
                perror("fuse");
                return;
        }
        if (fork() == 0)
                serve(fd);
        (void) mkdir("/tmp/empty", 0755);
        (void) mkdir("/tmp/over", 0755);
        if (mount("overlay", "/tmp/over", "overlay", 0, "lowerdir=/mnt:/tmp/empty,userxattr") < 0)
                perror("overlay");
        *silent = true;
        (void) !chroot("/tmp/over");
}

static void hang(void) {
        for (int i = 0; i < 6; i++)
                if (fork() == 0) {
                        struct stat st;

                        if (i % 3 == 0)
                                (void) stat("/mnt/never", &st);
                        else if (i % 3 == 1)
                                (void) !chdir("/tmp/over/never");
                        else
                                (void) open("/mnt/never", O_RDONLY | O_CLOEXEC);
                        rest();
                }
}

static void deep(void) {
        if (chdir("/tmp") < 0)
                return;
        for (int i = 0; i < DEPTH; i++)
                if (mkdir("d", 0755) < 0 || chdir("d") < 0)
                        break;
        (void) close(open("bottom", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
}

static void wide(void) {
        (void) mkdir("/tmp/wide", 0755);
        if (chdir("/tmp/wide") < 0)
                return;
        for (int i = 0; i < WIDTH; i++) {
                char name[32];

                (void) snprintf(name, sizeof name, "%d", i);
                (void) close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        }
}

static void mounts(void) {
        (void) mkdir("/tmp/mounts", 0755);
        for (int i = 0; i < MOUNTS; i++) {
                char path[256];

                (void) snprintf(path, sizeof path, "/tmp/mounts/%0200d", i);
                (void) mkdir(path, 0755);
                (void) mount("a\\b c", path, "tmpfs", 0, nullptr);
        }
}

static void pipes(void) {
        static char bytes[65536];

        memset(bytes, 'x', sizeof bytes);
        under_way();
        for (int fd = 1;; fd = 3 - fd)
                (void) !write(fd, bytes, sizeof bytes);
}

static void stop(void) {
        for (int i = 0; i < 4; i++)
                if (fork() == 0)
                        for (;;)
                                (void) raise(SIGSTOP);
}

static void fifos(void) {
        static const char *const files[] = {"/etc/passwd", "/etc/group", "/etc/mtab", "/etc/os-release"};

        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
                (void) unlink(files[i]);
                (void) mkfifo(files[i], 0644);
        }
        (void) rename("/var", "/was-var");
        (void) symlink("/proc/1/root", "/var");
        (void) rename("/home", "/was-home");
        (void) symlink("/mnt/never", "/home");
}

static void exchange(void) {
        (void) mkdir("/tmp/a", 0755);
        (void) mkdir("/tmp/a/b", 0755);
        (void) mkdir("/tmp/c", 0755);
        under_way();
        for (;;) {
                (void) rename("/tmp/a/b", "/tmp/c/b");
                (void) rename("/tmp/c/b", "/tmp/a/b");
        }
}

static void forks(void) {
        under_way();
        for (;;) {
                if (fork() == 0)
                        _exit(0);
                (void) usleep(2000);
        }
}

static const struct {
        const char *name;
        void (*act)(void);
} actions[] = {{"fuse", fuse},   {"hang", hang}, {"deep", deep},   {"wide", wide},       {"mounts", mounts},
               {"pipes", pipes}, {"stop", stop}, {"fifos", fifos}, {"rename", exchange}, {"forks", forks}};

static void begin(const char *name) {
        for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
                if (strcmp(actions[i].name, name) == 0) {
                        if (fork() == 0) {
                                actions[i].act();
                                under_way();
                                rest();
                        }
                        return;
                }
        (void) fprintf(stderr, "no action '%s'\n", name);
        exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
        char byte;

        (void) setvbuf(stdout, nullptr, _IONBF, 0);
        silent = mmap(nullptr, sizeof *silent, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (silent == MAP_FAILED || pipe(ready) < 0)
                return EXIT_FAILURE;
        for (int i = 2; i < argc; i++) {
                begin(argv[i]);
                (void) !read(ready[0], &byte, 1);
        }
        if (argc < 2 || open(argv[1], O_CREAT | O_WRONLY | O_CLOEXEC, 0644) < 0)
                return EXIT_FAILURE;
        rest();
}
