/* SPDX-License-Identifier: Apache-2.0 */
/* file-load.c - loads of files and directories in the current directory, each with its time
 *
 *   file-load MIB FILES
 *
 * Reads lines "LOAD [DIRECTORY]" and answers each with a line "NANOSECONDS OPERATIONS". Loads of
 * data use the file `data` of so many MiB, which `write` makes; an operation is a byte. Loads of
 * metadata use so many files in the directory `files`, from `create` to `unlink`, or in a directory
 * that the caller has made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
        BLOCK = 128 << 10, /* of sequential reads and writes */
        PAGE = 4096,
        MAPPINGS = 4, /* in turn, because one is read in no time */
        NAME_LENGTH = 300,
};

static const char data[] = "data", own[] = "files";
static size_t data_size;
static unsigned files;
static char directory[NAME_LENGTH]; /* of the line */
static unsigned char block[BLOCK];
static volatile uint64_t sum; /* so that reads of memory stay */

static int check(int result, const char *what) {
        if (result >= 0)
                return result;
        (void) fprintf(stderr, "file-load: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

static int open_data(int flags) {
        return check(open(data, flags | O_CLOEXEC, 0644), "open data");
}

static void close_data(int fd) {
        check(close(fd), "close data");
}

static void check_length(ssize_t length, size_t wanted, const char *what) {
        if (length >= 0 && (size_t) length != wanted)
                errno = EIO;
        check(length < 0 || (size_t) length != wanted ? -1 : 0, what);
}

/* ---- data ---- */

/* FUSE frees a removed file some time after unlink(). Truncation does not help: ext4 would write
 * the new data at the next close(). */
static void remove_data(void) {
        const struct timespec pause = {.tv_nsec = 100'000'000};

        (void) unlink(data);
        (void) nanosleep(&pause, nullptr);
}

static uint64_t write_data(void) {
        int fd = open_data(O_WRONLY | O_CREAT | O_EXCL);

        for (size_t at = 0; at < data_size; at += BLOCK)
                check_length(write(fd, block, BLOCK), BLOCK, "write");
        close_data(fd);
        return data_size;
}

static uint64_t read_data(void) {
        int fd = open_data(O_RDONLY);

        for (size_t at = 0; at < data_size; at += BLOCK)
                check_length(read(fd, block, BLOCK), BLOCK, "read");
        close_data(fd);
        return data_size;
}

static void warm_up(void) {
        (void) read_data();
}

static void sync_data(void) {
        int fd = open_data(O_RDWR);

        check(fsync(fd), "fsync");
        close_data(fd);
}

/* The page cache of this filesystem; that of one below it is not ours. */
static uint64_t drop_cache(void) {
        int fd = open_data(O_RDWR);

        check(fsync(fd), "fsync");
        (void) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close_data(fd);
        return 0;
}

/* Pages in an order that is the same in each run and that no readahead guesses: xorshift. */
static off_t random_place(uint32_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        return (off_t) (*state % (data_size / PAGE)) * PAGE;
}

static int random_fd; /* opened before the time is taken */

static void open_random(void) {
        warm_up();
        sync_data();
        random_fd = open_data(O_RDWR);
}

static void close_random(void) {
        close_data(random_fd);
}

static uint64_t random_reads(void) {
        uint32_t state = 1;

        for (size_t at = 0; at < data_size; at += PAGE)
                check_length(pread(random_fd, block, PAGE, random_place(&state)), PAGE, "pread");
        return data_size;
}

static uint64_t random_writes(void) {
        uint32_t state = 2;

        for (size_t at = 0; at < data_size; at += PAGE)
                check_length(pwrite(random_fd, block, PAGE, random_place(&state)), PAGE, "pwrite");
        return data_size;
}

static uint64_t random_writes_fsync(void) {
        uint64_t written = random_writes();

        check(fsync(random_fd), "fsync");
        return written;
}

static void *map_data(int fd, int protection) {
        void *map = mmap(nullptr, data_size, protection, MAP_SHARED, fd, 0);

        check(map == MAP_FAILED ? -1 : 0, "mmap");
        return map;
}

static uint64_t map_reads(void) {
        for (int i = 0; i < MAPPINGS; i++) {
                int fd = open_data(O_RDONLY);
                uint64_t *map = map_data(fd, PROT_READ), total = 0;

                for (size_t at = 0; at < data_size / sizeof *map; at++)
                        total += map[at];
                sum = total;
                check(munmap(map, data_size), "munmap");
                close_data(fd);
        }
        return data_size * MAPPINGS;
}

static uint64_t map_writes(void) {
        int fd = open_data(O_RDWR);
        unsigned char *map = map_data(fd, PROT_READ | PROT_WRITE);

        memset(map, 'm', data_size);
        check(munmap(map, data_size), "munmap");
        close_data(fd);
        return data_size;
}

/* ---- metadata ---- */

static const char *name_of(char ret[static NAME_LENGTH], const char *where, char kind, unsigned number) {
        (void) snprintf(ret, NAME_LENGTH, "%s/%c%u", where, kind, number);
        return ret;
}

static void make_directory(void) {
        check(mkdir(own, 0755) < 0 && errno != EEXIST ? -1 : 0, "mkdir");
}

static uint64_t create_files(void) {
        char name[NAME_LENGTH];

        for (unsigned i = 0; i < files; i++)
                close_data(check(open(name_of(name, own, 'f', i), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644), "create"));
        return files;
}

static uint64_t stat_in(const char *where) {
        char name[NAME_LENGTH];
        struct stat st;

        for (unsigned i = 0; i < files; i++)
                check(stat(name_of(name, where, 'f', i), &st), "stat");
        return files;
}

static uint64_t stat_given(void) {
        return stat_in(directory);
}

static uint64_t stat_own(void) {
        return stat_in(own);
}

static void fill_cache(void) {
        (void) stat_own();
}

static uint64_t change_modes(void) {
        char name[NAME_LENGTH];

        for (unsigned i = 0; i < files; i++)
                check(chmod(name_of(name, own, 'f', i), 0600), "chmod");
        return files;
}

static uint64_t open_files(void) {
        char name[NAME_LENGTH];

        for (unsigned i = 0; i < files; i++)
                close_data(check(open(name_of(name, own, 'f', i), O_RDONLY | O_CLOEXEC), "open"));
        return files;
}

static uint64_t rename_files(void) {
        char name[NAME_LENGTH], new_name[NAME_LENGTH];

        for (unsigned i = 0; i < files; i++)
                check(rename(name_of(name, own, 'f', i), name_of(new_name, own, 'r', i)), "rename");
        return files;
}

static uint64_t unlink_files(void) {
        char name[NAME_LENGTH];

        for (unsigned i = 0; i < files; i++)
                check(unlink(name_of(name, own, 'r', i)), "unlink");
        return files;
}

/* As `ls -l` does. */
static uint64_t list_directory(void) {
        DIR *stream = opendir(directory);
        const struct dirent *entry;
        uint64_t count = 0;
        struct stat st;

        check(stream ? 0 : -1, "opendir");
        while ((entry = readdir(stream))) {
                check(fstatat(dirfd(stream), entry->d_name, &st, AT_SYMLINK_NOFOLLOW), "fstatat");
                count++;
        }
        (void) closedir(stream);
        return count;
}

/* ---- lines ---- */

static const struct {
        const char *name;
        void (*before)(void); /* not in the time */
        uint64_t (*run)(void);
        void (*after)(void); /* nor this */
} loads[] = {
        {"write", remove_data, write_data, nullptr},
        {"read", warm_up, read_data, nullptr},
        {"read-cold", nullptr, read_data, nullptr},
        {"drop-cache", nullptr, drop_cache, nullptr},
        {"random-read", open_random, random_reads, close_random},
        {"random-write", open_random, random_writes, close_random},
        {"random-write-fsync", open_random, random_writes_fsync, close_random},
        {"mmap-read", warm_up, map_reads, nullptr},
        {"mmap-write", sync_data, map_writes, nullptr},
        {"create", make_directory, create_files, nullptr},
        {"stat", fill_cache, stat_own, nullptr},
        {"stat-fresh", nullptr, stat_given, nullptr},
        {"chmod", nullptr, change_modes, nullptr},
        {"open", nullptr, open_files, nullptr},
        {"rename", nullptr, rename_files, nullptr},
        {"unlink", nullptr, unlink_files, nullptr},
        {"list", nullptr, list_directory, nullptr},
};

static uint64_t now(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * UINT64_C(1'000'000'000) + (uint64_t) ts.tv_nsec;
}

static bool run(const char *name) {
        for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
                uint64_t begun, operations, taken;

                if (strcmp(loads[i].name, name) != 0)
                        continue;
                if (loads[i].before)
                        loads[i].before();
                begun = now();
                operations = loads[i].run();
                taken = now() - begun;
                if (loads[i].after)
                        loads[i].after();
                (void) printf("%" PRIu64 " %" PRIu64 "\n", taken, operations);
                (void) fflush(stdout);
                return true;
        }
        return false;
}

int main(int argc, char **argv) {
        char line[NAME_LENGTH], name[NAME_LENGTH];

        if (argc != 3) {
                (void) fprintf(stderr, "usage: file-load MIB FILES\n");
                return EXIT_FAILURE;
        }
        data_size = strtoul(argv[1], nullptr, 10) << 20;
        files = (unsigned) strtoul(argv[2], nullptr, 10);
        memset(block, 'x', sizeof block);
        while (fgets(line, sizeof line, stdin)) {
                *directory = '\0';
                if (sscanf(line, "%299s %299s", name, directory) < 1 || !run(name)) {
                        (void) fprintf(stderr, "file-load: invalid line: %s", line);
                        return EXIT_FAILURE;
                }
        }
        return EXIT_SUCCESS;
}
