/* SPDX-License-Identifier: Apache-2.0 */
/* jail.h - the two cells of nodens-pull
 *
 *                  network's cell                          unpacker's cell
 *      talks to    registries, proxies, resolvers          nobody: an empty network namespace
 *      reads       hostile HTTP, TLS, JSON                 hostile gzip, zstd, tar
 *      sees        /staging, /partial, copies of           /staging; /layers read only
 *                  resolv.conf, hosts, nsswitch.conf,
 *                  host.conf, gai.conf, CA certificates
 *      namespaces  mount, IPC, UTS                         user (identity map), mount, PID, network, IPC, UTS
 *      root        uid 0 without any capability            uid 0 with CHOWN FOWNER FSETID DAC_OVERRIDE SETFCAP of its own user
 *                                                          namespace: nothing but files on /staging obeys them
 *      system      a list, without exec, mount, ptrace,    the same list without sockets
 *      calls       keys, modules, namespaces
 *      both        no_new_privs, empty bounding set but for the above, no core files, no dumps, bounded memory and descriptors,
 *                  root file system = a small tmpfs, read only
 *
 * Where this is no boundary: the network's cell may write anything into its staging directory. The daemon hashes what it takes from there. */
#pragma once

#include "base/error.h"

/* A file that a cell gets a copy of. */
struct nd_jail_file {
        const char *path; /* in the cell, absolute; directories are made */
        const char *bytes;
        size_t length;
};

/* A directory that a cell sees: the descriptor is any directory of ours. */
struct nd_jail_mount {
        const char *path;
        int fd;
        bool read_only;
};

/* Makes the calling process's root a tmpfs with only these files and mounts; needs CAP_SYS_ADMIN. */
[[nodiscard]] struct nd_error *nd_jail_root(const struct nd_jail_file *files, size_t file_count,
                                            const struct nd_jail_mount *mounts, size_t mount_count);

/* The rest of each cell, for a process whose root is in place. */
[[nodiscard]] struct nd_error *nd_jail_close_network(void);
[[nodiscard]] struct nd_error *nd_jail_close_unpack(int userns_fd);

/* A user namespace in which every ID of ours is itself: in the initial one all of them, in a rootless node its own. */
[[nodiscard]] struct nd_error *nd_jail_userns(int *ret_fd);
