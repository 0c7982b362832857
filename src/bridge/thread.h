/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - what one thread of the server works with: its slot, its buffer, its credentials */
#pragma once

#include "bridge/fuse-request.h"
#include "bridge/state.h"

enum {
        BRIDGE_GROUPS = 32, /* supplementary groups of a caller that are used */
};

struct bridge_thread {
        struct bridge_state *state;
        struct bridge_slot *slot;
        unsigned char *request; /* BRIDGE_REQUEST bytes of the state */
        /* The request is worked on for the second time: the first server died with it. */
        bool again;
        unsigned char *buffer; /* for long replies; BRIDGE_REQUEST bytes of the state */
        uint32_t uid, gid;     /* that the filesystem sees now */
        uint32_t groups[BRIDGE_GROUPS];
        int group_count;
};

static inline struct bridge_shared *bridge_shared(const struct bridge_thread *thread) {
        return thread->state->shared;
}

/* The head of a request in its buffer, which is aligned. */
static inline const struct fuse_in_header *bridge_request_head(const unsigned char *bytes) {
        return (const void *) bytes;
}

/* "12" in the directory of our own descriptors: a name for a file of which we have an O_PATH
 * descriptor, for system calls that take no such descriptor. */
struct bridge_fd_name {
        char text[12];
};
struct bridge_fd_name bridge_fd_name(int fd);
