/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c - see fuse.h
 *
 * Theory of operation
 *   A connection is identified by its superblock's device number. It is searched in two places,
 *   since a container can hide either: in the mount tables of the threads, and in the fdinfo of
 *   their descriptors of /dev/fuse (Linux 6.16). A write to its file "abort" in fusectl ends every
 *   wait. fusectl is mounted for this process alone, because not every host has it mounted.
 *   A rootless node cannot mount fusectl. There a forced unmount, from inside the container's mount
 *   namespace, aborts the connection. It needs the mount's path, which a container can cover by
 *   another mount; then the container stays until the node ends. */
#include "cri/pod/fuse.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
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
        PLACES_MOST = 64,
};

struct numbers {
        uint32_t *items;
        size_t count;
        size_t capacity;
};

static void numbers_done(struct numbers *list) {
        nd_vector_done(list);
}

/* A FUSE mount in a container. */
struct place {
        uint32_t connection;
        int mount_namespace;
        char *path; /* there */
};

struct places {
        struct place *items;
        size_t count;
        size_t capacity;
};

static void places_done(struct places *list) {
        nd_vector_each (place, list) {
                nd_close_fd(&place->mount_namespace);
                free(place->path);
        }
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

/* The kernel writes blanks and backslashes as \\ and three octal digits. */
static char *unescape(const char *text, size_t length) {
        char *path = nd_malloc(length + 1);
        size_t n = 0;

        for (size_t i = 0; i < length; i++) {
                unsigned byte = (unsigned char) text[i];

                if (byte == '\\' && i + 3 < length && strspn(text + i + 1, "01234567") >= 3) {
                        byte = (unsigned) (text[i + 1] - '0') << 6 | (unsigned) (text[i + 2] - '0') << 3 |
                               (unsigned) (text[i + 3] - '0');
                        i += 3;
                }
                path[n++] = (char) byte;
        }
        path[n] = '\0';
        return path;
}

/* "36 35 0:45 / /mnt rw - fuse.name source options" */
bool cri_fuse_parse_mount(const char *line, size_t length, uint32_t *ret_connection, char **ret_path) {
        const char *type = memmem(line, length, " - fuse", 7), *at = line;
        uint32_t id, parent, major, minor;
        size_t path;

        if (!type || !take_number(&at, ' ', &id) || !take_number(&at, ' ', &parent) || !take_number(&at, ':', &major) ||
            !take_number(&at, ' ', &minor) || major != 0)
                return false;
        at += strcspn(at, " \n"); /* the root of the mount */
        path = *at == ' ' ? strcspn(++at, " \n") : 0;
        *ret_connection = minor;
        if (ret_path)
                *ret_path = unescape(at, path);
        return true;
}

static void add_mounts(const char *table, struct numbers *ret) {
        for (const char *line = table; *line;) {
                size_t length = strcspn(line, "\n");
                uint32_t number;

                if (cri_fuse_parse_mount(line, length, &number, nullptr))
                        add(ret, number);
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

/* Remembers the thread's FUSE mounts, with its mount namespace. */
static void note_places(const char *thread, struct places *ret) {
        nd_autofree char *path = nd_format("/proc/%s/mountinfo", thread), *ns = nd_format("/proc/%s/ns/mnt", thread),
                         *table = nullptr;

        nd_ignore(nd_file_read_kernel(path, TABLE, &table));
        for (const char *line = table; line && *line && ret->count < PLACES_MOST;) {
                size_t length = strcspn(line, "\n");
                struct place place = {.mount_namespace = -EBADF};

                if (cri_fuse_parse_mount(line, length, &place.connection, &place.path)) {
                        place.mount_namespace = open(ns, O_RDONLY | O_CLOEXEC);
                        nd_vector_push(ret, place);
                }
                line += length + (line[length] == '\n');
        }
}

struct search {
        unsigned threads;
        struct numbers connections;
        struct places places;
};

static void search_done(struct search *search) {
        nd_vector_done(&search->connections);
        places_done(&search->places);
}

static void look_at_thread(const char *thread, struct search *search) {
        size_t before = search->connections.count;

        (void) look_at_mounts(thread, &search->connections);
        look_at_descriptors(thread, &search->connections);
        /* threads that share a mount namespace need one visit */
        if (search->connections.count > before)
                note_places(thread, &search->places);
}

static void look_at_cgroup(int cgroup, unsigned depth, struct search *search) {
        nd_cleanup(nd_strings_done) struct nd_strings children = {};
        char text[ND_CGROUP_FILE];

        if (nd_cgroup_read(cgroup, "cgroup.threads", text))
                for (char *at = text, *thread; (thread = strsep(&at, "\n")) && ++search->threads <= THREADS_MOST;)
                        if (*thread)
                                look_at_thread(thread, search);
        if (depth >= DEPTH_MOST)
                return;
        nd_ignore(nd_dir_list(cgroup, ".", THREADS_MOST, &children));
        nd_vector_each (child, &children) {
                nd_autoclose int fd = openat(cgroup, *child, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

                if (fd >= 0)
                        look_at_cgroup(fd, depth + 1, search);
        }
}

static void unmount_all(const struct places *places, const struct numbers *host) {
        nd_autoclose int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

        if (home < 0)
                return;
        nd_vector_each (place, places) {
                if (!has(host, place->connection) && nd_sys->setns(place->mount_namespace, CLONE_NEWNS) == 0)
                        (void) nd_sys->umount2(place->path, MNT_FORCE | UMOUNT_NOFOLLOW);
        }
        if (nd_sys->setns(home, CLONE_NEWNS) < 0)
                _exit(EXIT_FAILURE); /* the container's paths are not ours */
}

static void abort_all(const struct numbers *connections, const struct numbers *host) {
        nd_vector_each (number, connections) {
                nd_autofree char *path = nd_format(CONNECTIONS "/%u/abort", *number);

                if (!has(host, *number))
                        nd_ignore(nd_file_write_kernel(path, "1"));
        }
}

void cri_fuse_abort(const char *cgroup) {
        nd_cleanup(search_done) struct search search = {};
        nd_cleanup(numbers_done) struct numbers host = {};
        nd_autoclose int fd = -EBADF;

        nd_ignore(nd_cgroup_open(cgroup, &fd));
        if (fd < 0)
                return;
        look_at_cgroup(fd, 0, &search);
        if (search.connections.count == 0)
                return;
        /* connections of filesystems that the host uses too must not be aborted */
        if (!look_at_mounts("self", &host))
                return;
        nd_ignore(nd_mount_namespace_private());
        if (nd_sys->mount("fusectl", CONNECTIONS, "fusectl", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0 && errno == EPERM)
                unmount_all(&search.places, &host);
        else
                abort_all(&search.connections, &host);
}
