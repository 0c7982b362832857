/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - see serve.h */
#include "bridge/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "bridge/identity.h"
#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"
#include "sys/calls.h"

enum {
        BACKGROUND_MOST = 64, /* requests that no process waits for */
        CONGESTED = 48,
        PAGE = 4096,
};

/* ---- the first request ---- */

static void negotiate(struct bridge_thread *thread, const struct bridge_request *request) {
        struct bridge_shared *shared = bridge_shared(thread);
        const struct fuse_init_in *argument = request->argument;
        uint64_t offered = argument->flags;
        uint64_t wanted = FUSE_ASYNC_READ | FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_BIG_WRITES | FUSE_DONT_MASK |
                          FUSE_AUTO_INVAL_DATA | FUSE_ASYNC_DIO | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES | FUSE_INIT_EXT |
                          FUSE_SETXATTR_EXT | FUSE_CREATE_SUPP_GROUP | FUSE_CACHE_SYMLINKS | FUSE_HANDLE_KILLPRIV_V2 |
                          FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | FUSE_DIRECT_IO_ALLOW_MMAP;
        struct fuse_init_out reply = {.major = FUSE_KERNEL_VERSION,
                                      .minor = FUSE_KERNEL_MINOR_VERSION,
                                      .max_readahead = argument->max_readahead,
                                      .max_background = BACKGROUND_MOST,
                                      .congestion_threshold = CONGESTED,
                                      .max_write = BRIDGE_WRITE,
                                      .time_gran = 1,
                                      .max_pages = BRIDGE_WRITE / PAGE};

        if (offered & FUSE_INIT_EXT && request->head->len >= sizeof *request->head + sizeof *argument)
                offered |= (uint64_t) argument->flags2 << 32;
        if (shared->facts.acl)
                wanted |= FUSE_POSIX_ACL;
        if (shared->settings.passthrough)
                wanted |= FUSE_PASSTHROUGH;
        if (shared->settings.mode == BRIDGE_MODE_IDMAP)
                wanted |= FUSE_ALLOW_IDMAP;
        shared->flags = wanted & offered;
        reply.flags = (uint32_t) shared->flags;
        reply.flags2 = (uint32_t) (shared->flags >> 32);
        reply.max_stack_depth = shared->flags & FUSE_PASSTHROUGH ? shared->facts.stack_depth : 0;
        bridge_reply(thread, request->head, argument->major == FUSE_KERNEL_VERSION ? 0 : -EPROTO, &reply, sizeof reply);
        bridge_state_set_mounted(thread->state);
}

/* ---- dispatch ---- */

static void forget(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_forget_one *one = request->data;

        /* First, because forgetting twice would free a node that the kernel knows. */
        bridge_reply_none(thread, request->head);
        if (request->head->opcode == FUSE_FORGET)
                bridge_node_forget(thread->state, request->head->nodeid,
                                   ((const struct fuse_forget_in *) request->argument)->nlookup);
        else
                for (size_t i = 0; i < request->data_length / sizeof *one; i++)
                        bridge_node_forget(thread->state, one[i].nodeid, one[i].nlookup);
}

static void destroy(struct bridge_thread *thread, const struct bridge_request *request) {
        bridge_reply_error(thread, request->head, 0);
}

static const struct {
        void (*alone)(struct bridge_thread *, const struct bridge_request *);
        void (*with_node)(struct bridge_thread *, const struct bridge_request *, struct bridge_node *);
} operations[] = {
        [FUSE_LOOKUP] = {.with_node = bridge_lookup},
        [FUSE_FORGET] = {.alone = forget},
        [FUSE_GETATTR] = {.with_node = bridge_getattr},
        [FUSE_SETATTR] = {.with_node = bridge_setattr},
        [FUSE_READLINK] = {.with_node = bridge_readlink},
        [FUSE_SYMLINK] = {.with_node = bridge_make},
        [FUSE_MKNOD] = {.with_node = bridge_make},
        [FUSE_MKDIR] = {.with_node = bridge_make},
        [FUSE_UNLINK] = {.with_node = bridge_unlink},
        [FUSE_RMDIR] = {.with_node = bridge_unlink},
        [FUSE_RENAME] = {.with_node = bridge_rename},
        [FUSE_LINK] = {.with_node = bridge_link},
        [FUSE_OPEN] = {.with_node = bridge_open},
        [FUSE_READ] = {.alone = bridge_read},
        [FUSE_WRITE] = {.alone = bridge_write},
        [FUSE_STATFS] = {.with_node = bridge_statfs},
        [FUSE_RELEASE] = {.alone = bridge_release},
        [FUSE_FSYNC] = {.alone = bridge_fsync},
        [FUSE_SETXATTR] = {.with_node = bridge_xattr},
        [FUSE_GETXATTR] = {.with_node = bridge_xattr},
        [FUSE_LISTXATTR] = {.with_node = bridge_xattr},
        [FUSE_REMOVEXATTR] = {.with_node = bridge_xattr},
        [FUSE_FLUSH] = {.alone = bridge_flush},
        [FUSE_INIT] = {.alone = negotiate},
        [FUSE_OPENDIR] = {.with_node = bridge_opendir},
        [FUSE_READDIR] = {.with_node = bridge_readdir},
        [FUSE_RELEASEDIR] = {.alone = bridge_release},
        [FUSE_FSYNCDIR] = {.alone = bridge_fsync},
        [FUSE_GETLK] = {.alone = bridge_lock},
        [FUSE_SETLK] = {.alone = bridge_lock},
        [FUSE_SETLKW] = {.alone = bridge_lock},
        [FUSE_CREATE] = {.with_node = bridge_create},
        [FUSE_INTERRUPT] = {.alone = bridge_lock_interrupt},
        [FUSE_DESTROY] = {.alone = destroy},
        [FUSE_BATCH_FORGET] = {.alone = forget},
        [FUSE_FALLOCATE] = {.alone = bridge_fallocate},
        [FUSE_READDIRPLUS] = {.with_node = bridge_readdir},
        [FUSE_RENAME2] = {.with_node = bridge_rename},
        [FUSE_LSEEK] = {.alone = bridge_lseek},
        [FUSE_COPY_FILE_RANGE] = {.alone = bridge_copy},
        [FUSE_SYNCFS] = {.with_node = bridge_syncfs},
        [FUSE_TMPFILE] = {.with_node = bridge_create},
};

static void work(struct bridge_thread *thread, size_t length) {
        struct bridge_request request;
        struct bridge_node *node;
        int r = bridge_request_decode(thread->request, length, bridge_shared(thread)->flags & FUSE_SETXATTR_EXT, &request);

        if (!request.head)
                return;
        if (r == 0 && operations[request.head->opcode].alone) {
                operations[request.head->opcode].alone(thread, &request);
                return;
        }
        if (r == 0)
                r = bridge_node_get(thread->state, request.head->nodeid, &node);
        if (r != 0) {
                bridge_reply_error(thread, request.head, r);
                return;
        }
        operations[request.head->opcode].with_node(thread, &request, node);
        bridge_node_put(thread->state, node);
}

/* A request that an earlier server read and did not answer. */
static void resume(struct bridge_thread *thread) {
        const struct fuse_in_header *head = bridge_request_head(thread->request);

        if (head->unique == 0 || head->unique == thread->slot->answered || head->len < sizeof *head ||
            head->len > BRIDGE_REQUEST)
                return;
        if (bridge_reply_recorded(thread, head))
                return;
        thread->again = thread->slot->unique == head->unique && thread->slot->phase == BRIDGE_BEGUN;
        work(thread, head->len);
        thread->again = false;
}

/* ---- threads ---- */

/* Each thread has a umask, a current directory and filesystem IDs of its own. */
static void prepare_thread(struct bridge_thread *thread) {
        nd_autoclose int own = openat(bridge_shared(thread)->proc, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (nd_sys->unshare(CLONE_FS) < 0 || own < 0 || fchdir(own) < 0) {
                (void) dprintf(STDERR_FILENO, "nodens-bridge: cannot enter the directory of open files: %s\n",
                               strerror(errno));
                _exit(EXIT_FAILURE);
        }
        (void) umask(0);
        thread->group_count = -1; /* not known */
        thread->uid = thread->gid = UINT32_MAX;
        bridge_identity_root(thread);
        bridge_identity_keep_setid(false);
}

/* The kernel copies a request while this process may be killed. It fails the request if it would
 * have to wait for a page then, so the pages are present before. */
static void touch(volatile unsigned char *bytes, size_t length) {
        for (size_t at = 0; at < length; at += PAGE)
                bytes[at] = bytes[at];
}

static void *serve(void *argument) {
        struct bridge_thread *thread = argument;
        struct bridge_shared *shared = bridge_shared(thread);
        struct fuse_in_header *head = (void *) thread->request;

        prepare_thread(thread);
        touch(thread->request, shared->settings.passthrough ? 2 * PAGE : BRIDGE_REQUEST);
        resume(thread);
        for (;;) {
                ssize_t length;

                __atomic_store_n(&head->unique, 0, __ATOMIC_SEQ_CST);
                length = read(shared->device, thread->request, BRIDGE_REQUEST);
                if (length >= 0)
                        work(thread, (size_t) length);
                else if (errno == ENODEV)
                        break;
                else if (errno != EINTR && errno != EAGAIN && errno != ENOENT) {
                        (void) dprintf(STDERR_FILENO, "nodens-bridge: cannot read a request: %s\n", strerror(errno));
                        _exit(EXIT_FAILURE);
                }
        }
        shared->ended = true; /* unmounted */
        _exit(EXIT_SUCCESS);
}

static void wake_up(int signal) {
        (void) signal; /* ends a system call that waits for a lock */
}

void bridge_serve(struct bridge_state *state) {
        static struct bridge_thread threads[BRIDGE_THREADS];
        static const struct sigaction action = {.sa_handler = wake_up};

        (void) sigaction(SIGUSR1, &action, nullptr);
        bridge_lock_resume(state);
        for (size_t i = 0; i < BRIDGE_THREADS; i++) {
                pthread_attr_t attributes;
                pthread_t id;

                threads[i] = (struct bridge_thread) {.state = state,
                                                     .slot = &state->shared->slots[i],
                                                     .request = state->shared->requests[i],
                                                     .buffer = state->shared->replies[i]};
                (void) pthread_attr_init(&attributes);
                (void) pthread_attr_setstacksize(&attributes, 256 << 10);
                if (pthread_create(&id, &attributes, serve, &threads[i]) != 0) {
                        (void) dprintf(STDERR_FILENO, "nodens-bridge: cannot start a thread\n");
                        _exit(EXIT_FAILURE);
                }
                (void) pthread_attr_destroy(&attributes);
        }
        bridge_lock_interrupt_loop();
}
