/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - what must survive the death of the server: nodes, open files, locks, requests
 *
 * Theory of operation. Three processes share one table of file descriptors and this memory
 * (keepers.c). The server works on requests; it may be killed between any two instructions. A
 * keeper then starts a new server, which finds the descriptors under their numbers and the state
 * here.
 *
 * Only some of it is kept consistent at each instant: whether a node, a file or a lock is in use
 * (`used`, set last and cleared first), and what is in it. The rest, hash chains and lists of free
 * places, is derived from that and built again by bridge_state_recover(). A number in `fd` always
 * belongs to its record: it is stored after the descriptor was opened and cleared before it is
 * closed, so a death in between leaves a descriptor that no record has, and
 * bridge_state_close_unknown() closes it.
 *
 * Owns: the memory and all descriptors in it. Invariant: a node is in use while the kernel knows it
 * (`lookups`), while a file of it is open (`opens`) or while a thread works with it (`busy`). */
#pragma once

#include <linux/fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bridge/settings.h"

enum {
        BRIDGE_STATE_VERSION = 1,
        BRIDGE_NODES = 1 << 22,
        BRIDGE_FILES = 1 << 16,
        BRIDGE_LOCKS = 1 << 12,
        BRIDGE_WAITERS = 64, /* threads that wait for a lock */
        BRIDGE_THREADS = 8,
        BRIDGE_BUCKETS = 1 << 16,
        BRIDGE_HANDLE = 128,
        BRIDGE_WRITE = 128 << 10, /* most data in one request */
        BRIDGE_REQUEST = BRIDGE_WRITE + 8192,
        BRIDGE_REPLY = 208, /* longest reply that is not made in a buffer */
        BRIDGE_GRANTS = 256,
        BRIDGE_CELL_KINDS = 4,
        BRIDGE_CELL_LEAST = 32, /* sizes are 32, 64, 128 and 256 bytes */
};

/* Bytes of variable length of a node: its file handle, its name. Replaced by one store. */
struct bridge_cell {
        alignas(8) uint32_t index; /* 0 = none */
        uint8_t kind;              /* which size */
        uint8_t length;
};
static_assert(sizeof(struct bridge_cell) == 8);

struct bridge_node {
        uint64_t lookups;
        uint64_t device, inode;
        uint64_t identity; /* hash of the handle: a reused inode number is another file */
        uint32_t next;     /* in its hash chain, or in the list of free nodes */
        uint32_t parent;
        int32_t fd;      /* O_PATH; -1 = opened again when needed */
        int32_t backing; /* the kernel's ID of the file that is passed through; 0 = none */
        uint32_t opens, busy;
        uint32_t mode;
        int handle_type;
        struct bridge_cell handle, name;
        int64_t size, changed; /* as the kernel was told last */
        bool used, hashed;
        bool removed; /* it has no name any more */
};

struct bridge_file {
        int32_t fd;
        uint32_t node;
        uint32_t generation; /* upper half of the kernel's file handle */
        uint32_t next;
        bool used;
};

/* A POSIX lock owner of the pod has an open file description of its own. */
struct bridge_lock {
        uint64_t owner;
        uint32_t node;
        int32_t fd;
        bool used;
};

enum bridge_process {
        BRIDGE_SERVER,
        BRIDGE_KEEPER,
        BRIDGE_SPARE, /* becomes the keeper if that one dies */
        BRIDGE_PROCESSES,
};

enum bridge_phase {
        BRIDGE_IDLE,
        BRIDGE_BEGUN, /* an operation may have been done */
        BRIDGE_DONE,  /* and this is its reply */
};

/* One request of one thread. A new server looks here first: a request whose reply is certain is
 * answered from the record, any other is worked on again. */
struct bridge_slot {
        uint64_t answered; /* the last request that got its reply */
        uint64_t unique;   /* what phase and record below are about */
        enum bridge_phase phase;
        int32_t error;
        uint32_t length;
        bool in_buffer; /* the reply is in `replies`, not here */
        unsigned char reply[BRIDGE_REPLY];
        /* Before the operation: which inodes had the names; 0 = none. */
        uint64_t first_inode, second_inode;
        /* What the reply gives to the kernel: taken back if it is not sent. */
        uint64_t file;
        uint32_t grants;
        uint32_t granted[BRIDGE_GRANTS];
};

struct bridge_waiter {
        struct fuse_in_header head; /* unique 0 = free */
        struct fuse_lk_in lock;
        bool interrupted; /* the process that waits has a signal */
};

/* The memory that the processes share. */
struct bridge_shared {
        uint32_t version;
        uint64_t size;
        struct bridge_settings settings;
        struct bridge_facts facts;
        /* Descriptors: the device, the volume's root (O_PATH, and open as a directory where it is
         * one), /proc, and a pidfd of each process. */
        int32_t device, root, mount, proc;
        int32_t processes[BRIDGE_PROCESSES];
        uint64_t flags;    /* negotiated with the kernel */
        uint64_t restarts; /* of the server */
        bool ended;        /* unmounted: the processes exit */
        uint32_t mounted;  /* the kernel has its answer to the first request; a futex */
        uint32_t top_node, top_file;
        uint32_t top_cell[BRIDGE_CELL_KINDS];
        uint32_t generation;
        struct bridge_waiter waiters[BRIDGE_WAITERS];
        struct bridge_lock locks[BRIDGE_LOCKS];
        struct bridge_file files[BRIDGE_FILES];
        uint32_t buckets[BRIDGE_BUCKETS];
        struct bridge_slot slots[BRIDGE_THREADS];
        /* The kernel writes requests here, so that they survive the thread that read them; long
         * replies are made here. */
        alignas(4096) unsigned char requests[BRIDGE_THREADS][BRIDGE_REQUEST];
        alignas(4096) unsigned char replies[BRIDGE_THREADS][BRIDGE_REQUEST];
        struct bridge_node nodes[BRIDGE_NODES];
        unsigned char cells[]; /* of each kind 2 * BRIDGE_NODES, smallest first */
};

/* The view of one process. */
struct bridge_state {
        struct bridge_shared *shared;
        int fd; /* of the memory */
        pthread_mutex_t lock;
        uint32_t free_node, free_file, free_cell[BRIDGE_CELL_KINDS];
        uint32_t open_nodes; /* nodes that have a descriptor */
        uint32_t hand;       /* where the search for one to close goes on */
        uint32_t held_locks;
};

[[nodiscard]] struct nd_error *bridge_state_make(struct bridge_state *ret);

/* Wakes the process that waits in bridge_state_wait_mounted(), which returns false after a
 * timeout. bridge_state_set_waiting() lets it wait for a mounted volume again. */
void bridge_state_set_waiting(struct bridge_state *state);
void bridge_state_set_mounted(struct bridge_state *state);
[[nodiscard]] bool bridge_state_wait_mounted(const struct bridge_state *state);

/* Maps the state of another process; the descriptors in it are the caller's business.
 * ND_PRECONDITION if it was made by a version with another layout. */
[[nodiscard]] struct nd_error *bridge_state_map(int fd, struct bridge_state *ret);

/* For a new server, before it has threads: builds what is derived. */
void bridge_state_recover(struct bridge_state *state);

/* Closes all descriptors above standard error that the state does not have. */
void bridge_state_close_unknown(const struct bridge_state *state);

/* The functions below are called with the lock held. */

/* nullptr: all places are taken. The node is not in use yet. */
struct bridge_node *bridge_state_node_new(struct bridge_state *state);
void bridge_state_node_publish(struct bridge_state *state, struct bridge_node *node);
/* Returns the node's descriptor, or -EBADF. The caller owns it and closes it without the lock: the
 * last close of a removed file frees its blocks, which takes long for a large one. */
[[nodiscard]] int bridge_state_node_free(struct bridge_state *state, struct bridge_node *node);
/* Takes the node out of the hash table: its inode number may be used again. */
void bridge_state_node_unhash(struct bridge_state *state, struct bridge_node *node);
struct bridge_node *bridge_state_node_find(const struct bridge_state *state, uint64_t device, uint64_t inode,
                                           const struct bridge_node *after);
static inline uint32_t bridge_state_node_id(const struct bridge_state *state, const struct bridge_node *node) {
        return (uint32_t) (node - state->shared->nodes);
}

/* False if there is no room, or the bytes are too long. An old value is replaced. */
[[nodiscard]] bool bridge_state_cell_set(struct bridge_state *state, struct bridge_cell *cell, const void *bytes,
                                         size_t length);
void bridge_state_cell_clear(struct bridge_state *state, struct bridge_cell *cell);
const unsigned char *bridge_state_cell_get(const struct bridge_state *state, const struct bridge_cell *cell);

/* 0: all places are taken; else the kernel's file handle. */
uint64_t bridge_state_file_new(struct bridge_state *state, int fd, struct bridge_node *node);
struct bridge_file *bridge_state_file_get(const struct bridge_state *state, uint64_t handle);
/* Returns the descriptor, for the caller to close as above. */
[[nodiscard]] int bridge_state_file_free(struct bridge_state *state, struct bridge_file *file);

/* Clears the number in the record, then closes. */
void bridge_state_close(int32_t *fd);
