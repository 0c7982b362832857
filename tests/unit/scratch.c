/* SPDX-License-Identifier: Apache-2.0 */
#include <unit/scratch.h>

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

char *scratch_make(void) {
        const char *base = getenv("TMPDIR");
        char *path = nd_format("%s/nodens-unit-XXXXXX", base && *base ? base : "/var/tmp");

        if (!mkdtemp(path))
                err(EXIT_FAILURE, "make directory '%s'", path);
        return path;
}

static int remove_entry(const char *path, [[maybe_unused]] const struct stat *st, [[maybe_unused]] int type,
                        [[maybe_unused]] struct FTW *position) {
        return remove(path);
}

void scratch_remove(char **path) {
        enum { DESCRIPTORS = 8 };

        if (!*path)
                return;
        if (nftw(*path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) < 0)
                warn("remove '%s'", *path);
        free(*path);
        *path = nullptr;
}

void scratch_write(const char *directory, const char *name, const void *bytes, size_t length) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);
        nd_autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0 || write(fd, bytes, length) != (ssize_t) length)
                err(EXIT_FAILURE, "write '%s'", path);
}

void scratch_text(const char *directory, const char *name, const char *text) {
        scratch_write(directory, name, text, strlen(text));
}

char *scratch_read(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);
        nd_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        char bytes[128 * 1024];
        ssize_t n;

        if (fd < 0)
                return nullptr;
        n = read(fd, bytes, sizeof bytes);
        if (n < 0)
                err(EXIT_FAILURE, "read '%s'", path);
        return nd_strndup(bytes, (size_t) n);
}

void scratch_mkdir(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);

        for (char *slash = path + strlen(directory); (slash = strchr(slash + 1, '/'));) {
                *slash = '\0';
                (void) mkdir(path, 0700);
                *slash = '/';
        }
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                err(EXIT_FAILURE, "make directory '%s'", path);
}

bool scratch_has(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);
        struct stat st;

        return lstat(path, &st) == 0;
}

size_t scratch_entries(const char *directory, const char *name) {
        nd_autofree char *path = nd_format("%s/%s", directory, name);
        DIR *dir = opendir(path);
        const struct dirent *entry;
        size_t count = 0;

        if (!dir)
                err(EXIT_FAILURE, "open directory '%s'", path);
        while ((entry = readdir(dir)))
                count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
        (void) closedir(dir);
        return count;
}

/* Unmounts what other tests have mounted at this moment; the number of mounts it found. */
static unsigned detach_other_tests(void) {
        nd_autofree char *line = nullptr;
        FILE *mounts = fopen("/proc/self/mountinfo", "re");
        char path[PATH_MAX];
        size_t size = 0;
        unsigned found = 0;

        if (!mounts)
                err(EXIT_FAILURE, "open the mount table");
        while (getline(&line, &size, mounts) >= 0)
                if (sscanf(line, "%*d %*d %*s %*s %4095s", path) == 1 && strstr(path, "/nodens-unit-")) {
                        (void) umount2(path, MNT_DETACH);
                        found++;
                }
        (void) fclose(mounts);
        return found;
}

/* The kernel removes a mount from every namespace when its mount point is removed: copies of other
 * tests' mounts would vanish while this test counts mounts. */
void scratch_private_mounts(void) {
        if (geteuid() != 0)
                return;
        if (unshare(CLONE_NEWNS) < 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
                err(EXIT_FAILURE, "make a mount namespace");
        for (int i = 0; i < 100 && detach_other_tests() > 0; i++)
                ; /* a table that changes while it is read may hide a line */
}
