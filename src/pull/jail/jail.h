/* SPDX-License-Identifier: Apache-2.0 */
/* jail.h - the cells of nodens-fetch and nodens-unpack
 *
 *                  fetcher                    supervisor                 stream worker           tree worker
 *      talks to    registries, proxies,       the fetcher                pipes                   pipes
 *                  resolvers; the supervisor
 *      reads       hostile HTTP, TLS, JSON,   messages of fixed size,    gzip, zstd; or only     hostile tar; marks
 *                  archives of an import      layer.json of its own      hashes
 *      sees        /blobs, /partial, copies   /unpack; /layers           an empty directory      the tree of its layer;
 *                  of resolv.conf, hosts,     read only                                          while it finalizes, the
 *                  nsswitch.conf, host.conf,                                                     trees below, read only
 *                  gai.conf, CA certificates
 *      namespaces  mount, network's own only  user (identity map), mount, PID, network (empty), IPC, UTS
 *                  for an import
 *      root        uid 0 without any          as the tree worker, and    no capability           CHOWN FOWNER FSETID
 *                  capability                 SYS_ADMIN SYS_CHROOT                               DAC_OVERRIDE SETFCAP
 *                                             SETPCAP
 *      system      a list, without exec,      a list with fork, chroot   reading, writing and    files; no socket,
 *      calls       mount, ptrace, fork,       and copies of mounts       memory                  process or signal
 *                  namespaces, unix sockets
 *      Landlock    where the kernel has it:
 *                  these directories, no
 *                  listening, no socket or
 *                  process outside
 *      all         no_new_privs, empty bounding set but for the above, no core files, no dumps, bounded memory and descriptors,
 *                  root file system = a small tmpfs, read only
 *
 * Capabilities of nodens-unpack are of its own user namespace: nothing but files in /unpack and mounts of its own obeys them.
 *
 * Trusted     the supervisor and the process that hashes a layer: they parse nothing that comes from a stranger.
 * Not trusted the fetcher, decompressors and tree workers. See supervisor.c for what each of them can reach. */
#pragma once

#include "base/error.h"

/* A file that a cell gets a copy of. */
struct pull_jail_file {
        const char *path; /* in the cell, absolute; directories are made */
        const char *bytes;
        size_t length;
};

/* A directory that a cell sees: the descriptor is any directory of ours; -EBADF makes an empty one. */
struct pull_jail_mount {
        const char *path;
        int fd;
        bool read_only;
};

/* Makes the calling process's root a tmpfs with only these files and mounts; needs CAP_SYS_ADMIN. */
[[nodiscard]] struct nd_error *pull_jail_set_root(const struct pull_jail_file *files, size_t file_count,
                                                  const struct pull_jail_mount *mounts, size_t mount_count);

/* The rest of each cell, for a process whose root is in place. @writable: the directories that the fetcher may change things in. */
[[nodiscard]] struct nd_error *pull_jail_enter_fetcher(const char *const *writable, size_t count);

/* System call filters of workers, compiled before the supervisor's own filter stands. */
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

/* For a child of the supervisor: @root_fd becomes its root and working directory; every other directory must be closed by then. */
[[nodiscard]] struct nd_error *pull_jail_enter_worker(const struct pull_jail_filters *filters, enum pull_jail_worker kind,
                                                      int root_fd);

/* A copy of the mount that holds a directory, alone: ".." ends in it, and nothing of it is left when the last descriptor goes. */
[[nodiscard]] struct nd_error *pull_jail_clone_mount(const char *path, bool read_only, int *ret_fd);

/* A user namespace in which every ID of ours is itself: in the initial one all of them, in a rootless node its own. */
[[nodiscard]] struct nd_error *pull_jail_open_userns(int *ret_fd);
