/* SPDX-License-Identifier: Apache-2.0 */
/* bindplan.h - the list of mounts of a node, made before anything is mounted and printed by
 * --dry-run
 *
 * The node's root is an empty tmpfs. Only the plan's entries are in it, under their paths on the
 * host. Root in the node is the user outside (SO_PEERCRED reports the user, too), so every socket
 * that the node can reach obeys it as it obeys the user. Therefore the plan omits:
 *
 *      $XDG_RUNTIME_DIR, /run      session bus, user manager, agents; only our api/ is there
 *      the home directory          only the data directory, under /var
 *      /tmp, /var/tmp, /dev/shm    empty, in memory: X11, agents and others' files live there
 *      /etc                        copies of files that the user may read, directories read-only
 *      /proc, /sys, /dev           fresh, of the node's own namespaces; devices one by one
 *      everything else             not there, unless asked for with --bind */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "base/vector.h"

enum rootless_bind_kind {
        BIND_DIRECTORY, /* create it */
        BIND_TMPFS,
        BIND_TREE,    /* a host directory, including the mounts below it */
        BIND_FILE,    /* a host file or device */
        BIND_COPY,    /* a copy of a host file */
        BIND_TEXT,    /* a file with our text */
        BIND_SYMLINK, /* source is the target of the link */
        BIND_PROC,
        BIND_SYSFS,
        BIND_CGROUP,
        BIND_DEVPTS,
        BIND_MQUEUE,
};

struct rootless_bind {
        enum rootless_bind_kind kind;
        char *target; /* in the node */
        char *source; /* on the host, or the text, or nullptr */
        bool read_only;
        bool optional; /* skip it if the source has disappeared */
        unsigned mode; /* of a directory, a tmpfs, a file; 0 = 0755 or 0644 */
};

struct rootless_bindplan {
        struct rootless_bind *items;
        size_t count;
        size_t capacity;
};
void rootless_bindplan_done(struct rootless_bindplan *plan);

/* Inputs of the plan. Paths are canonical. machine is "" or, in tests, a directory that stands for
 * the host's root. */
struct rootless_bindplan_facts {
        const char *machine;
        const char *name;    /* of the node: its host name */
        const char *api;     /* our own directory in the runtime directory */
        const char *data;    /* nullptr = /var/lib, /var/log and /var/cache are in memory */
        const char *home;    /* the user's */
        const char *runtime; /* the user's runtime directory; nullptr = none */
        const char *binds;   /* value of --bind: "PATH[:ro],..."; nullptr = none */
        const char *resolv;  /* text of resolv.conf */
        /* value of --programs: directories separated by colons, read-only; nullptr = none */
        const char *programs;
        const char *devices; /* value of --devices: "PATH,..."; nullptr = none */
        const char *cdi;     /* a directory with CDI files, read-only; nullptr = none */
        /* entries to append; nullptr = none */
        const struct rootless_bindplan *more;
        bool own_network; /* sysfs can be mounted only with a network namespace of our own */
};

[[nodiscard]] struct nd_error *rootless_bindplan_make(const struct rootless_bindplan_facts *facts,
                                                      struct rootless_bindplan *ret);

/* Adds a path of the host, read-only, if it exists. */
void rootless_bindplan_add_read_only(struct rootless_bindplan *plan, const char *path);

/* Adds a file with our text. */
void rootless_bindplan_add_text(struct rootless_bindplan *plan, const char *target, const char *text, unsigned mode);

/* Adds the node's file of host names. alias is a second name of the node; nullptr = none. */
void rootless_bindplan_add_hosts(struct rootless_bindplan *plan, const char *name, const char *alias);

/* Prints one line per entry, for --dry-run. */
void rootless_bindplan_print(const struct rootless_bindplan *plan, FILE *to);

/* Rejects a data directory on a network filesystem, which cannot work. */
[[nodiscard]] struct nd_error *rootless_bindplan_check_data(const char *path);
