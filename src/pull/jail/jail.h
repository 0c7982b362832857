/* SPDX-License-Identifier: Apache-2.0 */
/* jail.h - sandboxes of nodens-fetch and nodens-unpack
 *
 *                fetcher                supervisor             stream worker    tree worker
 *    talks to    registries, proxies,   the fetcher            pipes            pipes
 *                resolvers; the
 *                supervisor
 *    reads       hostile HTTP, TLS,     messages of fixed      gzip, zstd; or   hostile tar; marks
 *                JSON, archives of an   size, layer.json of    only hashes
 *                import                 its own
 *    sees        /blobs, /partial,      /unpack; /layers       an empty         the tree of its
 *                copies of              read-only              directory        layer; to finalize,
 *                resolv.conf, hosts,                                            the trees below,
 *                nsswitch.conf,                                                 read-only
 *                host.conf, gai.conf,
 *                CA certificates
 *    namespaces  mount; network only    user (identity map), mount, PID, network (empty), IPC, UTS
 *                for an import
 *    root        UID 0 without any      as the tree worker,    no capability    CHOWN FOWNER FSETID
 *                capability             and SYS_ADMIN                           DAC_OVERRIDE
 *                                       SYS_CHROOT SETPCAP                      SETFCAP
 *    system      a list, without exec,  a list with fork,      reading,         files; no socket,
 *    calls       mount, ptrace, fork,   chroot and copies of   writing and      process or signal
 *                namespaces, unix       mounts                 memory
 *                sockets
 *    Landlock    where the kernel has
 *                it: these
 *                directories, no
 *                listening, no socket
 *                or process outside
 *    all         no_new_privs, empty bounding set except for the above, no core files, no dumps,
 *                limited memory and descriptors, root file system = a small tmpfs, read-only
 *
 * Capabilities of nodens-unpack are of its own user namespace: they apply only to files in /unpack
 * and to mounts of its own.
 *
 * Trusted     the supervisor and the process that hashes a layer: they parse no untrusted data.
 * Untrusted   the fetcher, decompressors and tree workers. See supervisor.c for their reach. */
#pragma once

#include "base/error.h"

/* A file that is copied into the jail. */
struct pull_jail_file {
        const char *path; /* path in the jail, absolute; directories are created */
        const char *bytes;
        size_t length;
};

/* A directory visible in the jail: the descriptor is any directory of ours; -EBADF makes an empty
 * one. */
struct pull_jail_mount {
        const char *path;
        int fd;
        bool read_only;
};

/* Makes the calling process's root a tmpfs with only these files and mounts; needs
 * CAP_SYS_ADMIN. */
[[nodiscard]] struct nd_error *pull_jail_set_root(const struct pull_jail_file *files, size_t file_count,
                                                  const struct pull_jail_mount *mounts, size_t mount_count);

/* Applies the other restrictions, for a process whose root is set. @writable: the directories in
 * which the fetcher may change files. */
[[nodiscard]] struct nd_error *pull_jail_enter_fetcher(const char *const *writable, size_t count);

/* System call filters of workers, compiled before the supervisor's own filter is loaded. */
enum pull_jail_worker {
        JAIL_STREAM,
        JAIL_TREE,
        JAIL_WORKERS,
};
struct pull_jail_filter {
        unsigned short count;
        struct sock_filter *code;
};
struct pull_jail_filters {
        struct pull_jail_filter of[JAIL_WORKERS];
};

/* Enters the user namespace and a mount namespace that belongs to it. */
[[nodiscard]] struct nd_error *pull_jail_enter_supervisor(int userns_fd, struct pull_jail_filters *ret);

/* For a child of the supervisor: @root_fd becomes its root and working directory; every other
 * directory must already be closed. */
[[nodiscard]] struct nd_error *pull_jail_enter_worker(const struct pull_jail_filters *filters, enum pull_jail_worker kind,
                                                      int root_fd);

/* Returns a detached copy of the mount that holds a directory: ".." ends in it, and it disappears
 * with its last descriptor. */
[[nodiscard]] struct nd_error *pull_jail_clone_mount(const char *path, bool read_only, int *ret_fd);

/* Returns a user namespace that maps every ID of ours to itself: all IDs in the initial namespace,
 * its own in a rootless node. */
[[nodiscard]] struct nd_error *pull_jail_open_userns(int *ret_fd);
