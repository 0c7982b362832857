/* SPDX-License-Identifier: Apache-2.0 */
/* bindplan.h - what a node sees of the machine: a list, made before anything is mounted, that people can read
 *
 * The node's root is an empty tmpfs, and only what stands in the plan is in it, under the path that it has on the machine. Root in
 * the node is the user outside (SO_PEERCRED says so, too), so whatever socket the node could reach would obey it as it obeys the
 * user. Hence, by omission:
 *
 *      $XDG_RUNTIME_DIR, /run      session bus, user manager, agents: only our own api/ directory
 *      the home directory          only the data directory, under /var
 *      /tmp, /var/tmp, /dev/shm    empty, in memory: X11, agents and others' files live there
 *      /etc                        copies of the files that the user may read, directories read-only
 *      /proc, /sys, /dev           fresh, of the node's own namespaces; devices one by one
 *      everything else             not there, unless asked for with --bind */
#pragma once

#include <stdio.h>

#include "base/error.h"
#include "base/vector.h"

enum rootless_bind_kind {
        BIND_DIRECTORY, /* make it */
        BIND_TMPFS,
        BIND_TREE,    /* a directory of the machine with what is mounted below it */
        BIND_FILE,    /* a file or device of the machine */
        BIND_COPY,    /* of a file of the machine */
        BIND_TEXT,    /* a file of ours */
        BIND_SYMLINK, /* source is where it points to */
        BIND_PROC,
        BIND_SYSFS,
        BIND_CGROUP,
        BIND_DEVPTS,
        BIND_MQUEUE,
};

struct rootless_bind {
        enum rootless_bind_kind kind;
        char *target; /* in the node */
        char *source; /* on the machine, or the text, or nullptr */
        bool read_only;
        bool optional; /* a source that is gone meanwhile is passed over */
        unsigned mode; /* of a directory, a tmpfs, a file; 0 = 0755 or 0644 */
};

struct rootless_bindplan {
        struct rootless_bind *items;
        size_t count;
        size_t capacity;
};
void rootless_bindplan_done(struct rootless_bindplan *plan);

/* What the plan depends on. Paths are canonical but for machine, which is "" or, in tests, a directory that plays the machine's root. */
struct rootless_bindplan_facts {
        const char *machine;
        const char *name;    /* of the node: its host name */
        const char *api;     /* our own directory in the runtime directory */
        const char *data;    /* nullptr = /var/lib and the like are in memory */
        const char *home;    /* the user's */
        const char *runtime; /* the user's runtime directory; nullptr = none */
        const char *binds;   /* what --bind asks for: "PATH[:ro],..."; nullptr = nothing */
        const char *resolv;  /* text of resolv.conf */
        bool own_network;    /* sysfs can be mounted only for a network namespace of ours */
};

[[nodiscard]] struct nd_error *rootless_bindplan_make(const struct rootless_bindplan_facts *facts,
                                                      struct rootless_bindplan *ret);

/* For --dry-run: one line per entry. */
void rootless_bindplan_print(const struct rootless_bindplan *plan, FILE *to);

/* A data directory on a network filesystem cannot work; says so, and what to do. */
[[nodiscard]] struct nd_error *rootless_bindplan_check_data(const char *path);
