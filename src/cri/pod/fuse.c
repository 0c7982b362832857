/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - see fuse.h
 *
 * Theory of operation
 *   A connection is identified by its superblock's device number. It is searched in two places,
 *   since a container can hide either: in the mount tables of the threads, and in the fdinfo of
 *   their descriptors of /dev/fuse (Linux 6.16). A write to its file "abort" in fusectl ends every
 *   wait. fusectl is mounted for this process alone, because not every host has it mounted. */
#include "cri/pod/fuse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "sys/calls.h"
#include "sys/cgroup.h"
#include "sys/file.h"
#include "sys/mount.h"

#define CONNECTIONS "/sys/fs/fuse/connections"

enum {
        TABLE = 4 << 20,
        THREADS_MOST = 4096,
        FOUND_MOST = 1024,
        DESCRIPTORS_MOST = 4096, /* per thread */
        DEPTH_MOST = 16,         /* of nested cgroups */
};

struct numbers {
        uint32_t *items;
        size_t count;
        size_t capacity;
};

static void numbers_done(struct numbers *list) {
        nd_vector_done(list);
}

static bool has(const struct numbers *list, uint32_t number) {
        nd_vector_each (one, list)
                if (*one == number)
                        return true;
        return false;
}

static void add(struct numbers *list, uint32_t number) {
        if (list->count < FOUND_MOST && !has(list, number))
                nd_vector_push(list, number);
}

/* Parses a decimal number and the character after it; advances *at past both. */
static bool take_number(const char **at, char end, uint32_t *ret) {
        char *after = nullptr;
        unsigned long value;

        if (!isdigit((unsigned char) **at))
                return false;
        errno = 0;
        value = strtoul(*at, &after, 10);
        if (errno != 0 || value > UINT32_MAX || *after != end)
                return false;
        *at = after + 1;
        *ret = (uint32_t) value;
        return true;
}

/* "36 35 0:45 / /mnt rw - fuse.name source options" */
static void add_mounts(const char *table, struct numbers *ret) {
        for (const char *line = table; *line;) {
                size_t length = strcspn(line, "\n");
                const char *type = memmem(line, length, " - fuse", 7), *at = line;
                uint32_t id, parent, major, minor;

                if (type && take_number(&at, ' ', &id) && take_number(&at, ' ', &parent) && take_number(&at, ':', &major) &&
                    take_number(&at, ' ', &minor) && major == 0)
                        add(ret, minor);
                line += length + (line[length] == '\n');
        }
}

/* True if everything was read. */
static bool look_at_mounts(const char *thread, struct numbers *ret) {
        nd_autofree char *path = nd_format("/proc/%s/mountinfo", thread), *table = nullptr;

        nd_ignore(nd_file_read_kernel(path, TABLE, &table));
        if (table)
                add_mounts(table, ret);
        return table && ret->count < FOUND_MOST;
}

bool cri_fuse_parse_descriptor(const char *text, uint32_t *ret) {
        static const char *const common[] = {"pos:", "flags:", "mnt_id:", "ino:", "lock:"};
        static const char connection[] = "fuse_connection:";

        for (const char *line = text; *line;) {
                size_t length = strcspn(line, "\n");
                bool known = false;

                for (size_t i = 0; i < nd_count_of(common) && !known; i++)
                        known = nd_has_prefix(line, common[i]);
                if (!known && nd_has_prefix(line, connection)) {
                        const char *at = line + strlen(connection);

                        at += strspn(at, " \t");
                        return take_number(&at, '\n', ret);
                }
                if (!known)
                        return false;
                line += length + (line[length] == '\n');
        }
        return false;
}

static void look_at_descriptors(const char *thread, struct numbers *ret) {
        nd_autofree char *path = nd_format("/proc/%s/fdinfo", thread);
        DIR *directory = opendir(path);
        const struct dirent *entry;

        for (unsigned i = 0; directory && i < DESCRIPTORS_MOST && (entry = readdir(directory)); i++) {
                nd_autofree char *file = nd_format("%s/%s", path, entry->d_name), *text = nullptr;
                uint32_t number;

                if (entry->d_name[0] == '.')
                        continue;
                nd_ignore(nd_file_read_kernel(file, 64 << 10, &text));
                if (text && cri_fuse_parse_descriptor(text, &number))
                        add(ret, number);
        }
        if (directory)
                (void) closedir(directory);
}

static void look_at_cgroup(int cgroup, unsigned depth, unsigned *threads, struct numbers *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings children = {};
        char text[ND_CGROUP_FILE];

        if (nd_cgroup_read(cgroup, "cgroup.threads", text))
                for (char *at = text, *thread; (thread = strsep(&at, "\n")) && ++*threads <= THREADS_MOST;)
                        if (*thread) {
                                (void) look_at_mounts(thread, ret);
                                look_at_descriptors(thread, ret);
                        }
        if (depth >= DEPTH_MOST)
                return;
        nd_ignore(nd_dir_list(cgroup, ".", THREADS_MOST, &children));
        nd_vector_each (child, &children) {
                nd_autoclose int fd = openat(cgroup, *child, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (fd >= 0)
                        look_at_cgroup(fd, depth + 1, threads, ret);
        }
}

void cri_fuse_abort(const char *cgroup) {
        nd_cleanup(numbers_done) struct numbers found = {}, host = {};
        nd_autoclose int fd = -EBADF;
        unsigned threads = 0;

        nd_ignore(nd_cgroup_open(cgroup, &fd));
        if (fd < 0)
                return;
        look_at_cgroup(fd, 0, &threads, &found);
        if (found.count == 0)
                return;
        /* connections of filesystems that the host uses too must not be aborted */
        if (!look_at_mounts("self", &host))
                return;
        nd_ignore(nd_mount_namespace_private());
        (void) nd_sys->mount("fusectl", CONNECTIONS, "fusectl", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
        nd_vector_each (number, &found) {
                nd_autofree char *path = nd_format(CONNECTIONS "/%u/abort", *number);

                if (!has(&host, *number))
                        nd_ignore(nd_file_write_kernel(path, "1"));
        }
}
