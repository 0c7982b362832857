/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - a node's directory in the user's runtime directory, and the record of its init process
 *
 *      $XDG_RUNTIME_DIR/nodens/NAME/       (or /tmp/nodens-UID/NAME without a runtime directory)
 *              up.conf         options of `up` for the node's units (settings.h)
 *              lock            held while the node is started or stopped
 *              node.json       the record: init's process and the node's settings
 *              holder.sock     init listens here (control.h)
 *              helper          PID and start time of the network helper
 *              forward.sock    the forwarder listens here (forwarder.h); forward.lock is its lock
 *              ports.json      published ports of a node without a data directory
 *              owned-ports.json        published ports of an owner other than the user (ports.h)
 *              api.lock        lock of the port controller
 *              controller.lock lock of the controller for Services (controller/daemon.h)
 *              parts           processes of the forwarder, the controller and the components
 *                              without a service manager (services.h)
 *              overlay.json    the node's place in the list of --peers (node/overlay-plan.h)
 *              components/     programs of Kubernetes in the node (components/record.h)
 *              controller.kubeconfig
 *                              link to the user's file with the credentials of the controller
 *              etcd.sock, etcd-peers:0
 *                              of a control plane of the user's own (components/control-plane.h)
 *              api/            the part that the node sees: child_pid and api.sock
 *
 * A record describes a running node only if its process still exists: PID, start time and boot ID
 * must match. */
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
        uint64_t started; /* as in /proc/<pid>/stat */
        char *boot;
        char *net;    /* name of the network driver */
        char *data;   /* the data directory; nullptr = none */
        char *cgroup; /* path of the delegated cgroup on the host; nullptr = none */
        uint32_t mtu;
        uint64_t ids; /* number of mapped IDs */
};

enum { NODE_RECORD_BYTES = 64 * 1024 };

void rootless_node_done(struct rootless_node *node);
void rootless_node_record_done(struct rootless_node_record *record);

/* Checks a node name: it is used as directory name, host name and unit instance. */
[[nodiscard]] bool rootless_node_name_valid(const char *name);

/* Opens a node's directory. Creates it if make is set, else a missing one is ND_NOT_FOUND. */
[[nodiscard]] struct nd_error *rootless_node_open(const char *name, bool make, struct rootless_node *ret);
[[nodiscard]] struct nd_error *rootless_node_lock(struct rootless_node *node); /* does not wait */
/* Takes the lock of one of the processes that serve a node: at most one of each kind runs. */
[[nodiscard]] struct nd_error *rootless_node_lock_service(const struct rootless_node *node, const char *file, int *ret_fd);

[[nodiscard]] struct nd_error *rootless_node_record_parse(const char *text, size_t length, struct rootless_node_record *ret);
[[nodiscard]] char *rootless_node_record_format(const struct rootless_node_record *record);
[[nodiscard]] struct nd_error *rootless_node_record_save(const struct rootless_node *node,
                                                         const struct rootless_node_record *record);

/* Returns the record and a pidfd of the running init. ND_NOT_FOUND when the node is not running. */
[[nodiscard]] struct nd_error *rootless_node_open_init(const struct rootless_node *node, struct rootless_node_record *ret,
                                                       int *ret_pidfd);

/* Connects to the running init. */
[[nodiscard]] struct nd_error *rootless_node_connect(const struct rootless_node *node, int *ret_fd);

/* Returns the directory that holds the nodes' directories. */
[[nodiscard]] char *rootless_node_runtime_dir(void);

/* Opens a directory and checks that only its owner, this user, can enter or write it. */
[[nodiscard]] struct nd_error *rootless_node_open_own(int dir_fd, const char *path, bool make, int *ret_fd);

/* Removes the directory of a cleared node, for temporary nodes. */
[[nodiscard]] struct nd_error *rootless_node_remove(const struct rootless_node *node);

/* Removes the files of a dead node. The lock file stays: another process may hold it. */
void rootless_node_clear(const struct rootless_node *node);

/* Opens a pidfd of the process with this PID and start time; fails if the PID was reused. */
[[nodiscard]] struct nd_error *rootless_process_open(pid_t pid, uint64_t started, int *ret_pidfd);
