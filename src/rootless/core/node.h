/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a node's directory in the user's runtime directory, and the record of who holds it
 *
 *      $XDG_RUNTIME_DIR/nodens/NAME/       (or /tmp/nodens-UID/NAME where there is no runtime directory)
 *              lock            held by whoever starts or ends the node
 *              node.json       the record: init's process and what the node was made of
 *              holder.sock     init listens here (control.h)
 *              helper          process and start of the network helper
 *              forward.sock    the forwarder listens here (forwarder.h); forward.lock is its own
 *              ports.json      published ports of a node without a data directory; api.lock is the controller's
 *              parts           processes of the forwarder and the controller, where there is no service manager (services.h)
 *              api/            what the node itself sees of this directory: child_pid and api.sock
 *
 * A record is about a living node only if its process still is the one that was recorded: the start time and the boot say so. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct rootless_node {
        char *name;
        char *path;
        int fd;      /* of the directory */
        int lock_fd; /* -EBADF while not locked */
};
#define NODE_NONE ((struct rootless_node) {.fd = -EBADF, .lock_fd = -EBADF})

struct rootless_node_record {
        pid_t pid;
        uint64_t started; /* as /proc/<pid>/stat has it */
        char *boot;
        char *net;    /* name of the network driver */
        char *data;   /* the data directory; nullptr = none */
        char *cgroup; /* the delegated cgroup as the machine names it; nullptr = none is delegated */
        uint32_t mtu;
        uint64_t ids; /* how many IDs are mapped */
};

enum { NODE_RECORD_BYTES = 64 * 1024 };

void rootless_node_done(struct rootless_node *node);
void rootless_node_record_done(struct rootless_node_record *record);

/* Whether a name can be a node's: it is a directory's name, a host name and a unit's instance. */
[[nodiscard]] bool rootless_node_name_valid(const char *name);

/* Opens a node's directory; make it if it is not there, otherwise that is ND_NOT_FOUND. */
[[nodiscard]] struct nd_error *rootless_node_open(const char *name, bool make, struct rootless_node *ret);
[[nodiscard]] struct nd_error *rootless_node_lock(struct rootless_node *node); /* does not wait */
/* The lock of one of the processes that serve a node, so that there is one of each. */
[[nodiscard]] struct nd_error *rootless_node_lock_service(const struct rootless_node *node, const char *file, int *ret_fd);

[[nodiscard]] struct nd_error *rootless_node_record_parse(const char *text, size_t length, struct rootless_node_record *ret);
[[nodiscard]] char *rootless_node_record_format(const struct rootless_node_record *record);
[[nodiscard]] struct nd_error *rootless_node_record_save(const struct rootless_node *node,
                                                         const struct rootless_node_record *record);

/* The record, and a descriptor of the living init. ND_NOT_FOUND when nothing of that name lives. */
[[nodiscard]] struct nd_error *rootless_node_open_init(const struct rootless_node *node, struct rootless_node_record *ret,
                                                       int *ret_pidfd);

/* A connection to the living init. */
[[nodiscard]] struct nd_error *rootless_node_connect(const struct rootless_node *node, int *ret_fd);

/* Where nodes' directories are. */
[[nodiscard]] char *rootless_node_runtime_dir(void);

/* Removes the directory of a node that was cleared; for nodes that do not last. */
[[nodiscard]] struct nd_error *rootless_node_remove(const struct rootless_node *node);

/* Removes what a dead node has left; the lock file stays, since somebody may hold it. */
void rootless_node_clear(const struct rootless_node *node);

/* When a process was started, in the kernel's ticks. */
[[nodiscard]] struct nd_error *rootless_process_start_time(pid_t pid, uint64_t *ret);
/* A descriptor of a process that was started then, and is not another with its number. */
[[nodiscard]] struct nd_error *rootless_process_open(pid_t pid, uint64_t started, int *ret_pidfd);
