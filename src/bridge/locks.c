/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - POSIX and BSD locks, forwarded to the filesystem
 *
 * Each lock owner of the pod has an open file description of its own, on which open file
 * description locks (F_OFD_SETLK) stand for the owner's POSIX locks. The descriptors are in the
 * state, so locks survive the server. A BSD lock belongs to the open file itself.
 *
 * A request that must wait gets a thread; the wait is in the state, too, and a new server starts it
 * again. FUSE_INTERRUPT ends it by a signal. A process of the pod that is killed does not end
 * before its request does, so no interrupt may be lost: one that arrives before the wait has begun
 * is refused with EAGAIN, and the kernel sends it again. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include "bridge/node.h"
#include "bridge/operations.h"
#include "bridge/reply.h"

/* Called with the state's lock. */
static int find_or_open(struct bridge_thread *thread, const struct bridge_node *node, uint64_t owner, bool open_new) {
        struct bridge_state *state = thread->state;
        uint32_t id = bridge_state_node_id(state, node);
        struct bridge_lock *unused = nullptr;
        int fd;

        for (size_t i = 0; i < BRIDGE_LOCKS; i++) {
                struct bridge_lock *one = &state->shared->locks[i];

                if (one->used && one->node == id && one->owner == owner)
                        return one->fd;
                if (!one->used && !unused)
                        unused = one;
        }
        if (!open_new || !unused)
                return -ENOLCK;
        fd = open(bridge_fd_name(node->fd).text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                fd = open(bridge_fd_name(node->fd).text, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *unused = (struct bridge_lock) {.owner = owner, .node = id, .fd = fd};
        __atomic_store_n(&unused->used, true, __ATOMIC_SEQ_CST);
        state->held_locks++;
        return fd;
}

static int owner_fd(struct bridge_thread *thread, uint64_t id, uint64_t owner, bool open_new) {
        struct bridge_state *state = thread->state;
        struct bridge_node *node;
        int fd;

        if (!open_new && __atomic_load_n(&state->held_locks, __ATOMIC_RELAXED) == 0)
                return -ENOLCK;
        fd = bridge_node_get(state, id, &node);
        if (fd < 0)
                return fd;
        (void) pthread_mutex_lock(&state->lock);
        fd = find_or_open(thread, node, owner, open_new);
        (void) pthread_mutex_unlock(&state->lock);
        bridge_node_put(state, node);
        return fd;
}

static struct flock range_of(const struct fuse_file_lock *lock) {
        return (struct flock) {
                .l_type = (short) lock->type,
                .l_whence = SEEK_SET,
                .l_start = (off_t) lock->start,
                .l_len = lock->end >= INT64_MAX ? 0 : (off_t) (lock->end - lock->start + 1),
        };
}

/* Which descriptor a lock request works on, or -errno. */
static int lock_fd(struct bridge_thread *thread, const struct fuse_in_header *head, const struct fuse_lk_in *argument) {
        if (argument->lk_flags & FUSE_LK_FLOCK)
                return bridge_file_fd(thread, argument->fh);
        return owner_fd(thread, head->nodeid, argument->owner, argument->lk.type != F_UNLCK);
}

static int take(int fd, const struct fuse_lk_in *argument, bool wait) {
        struct flock range = range_of(&argument->lk);
        int how = argument->lk.type == F_RDLCK ? LOCK_SH : argument->lk.type == F_WRLCK ? LOCK_EX : LOCK_UN;
        int r;

        if (argument->lk_flags & FUSE_LK_FLOCK)
                r = flock(fd, wait ? how : how | LOCK_NB);
        else
                r = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
        return r < 0 ? -errno : 0;
}

/* ---- waiting ---- */

enum {
        INTERRUPT_MS = 5,
        EARLY_MS = 1,
};

static struct {
        pthread_mutex_t lock;
        pthread_cond_t interrupt;
        struct waiting {
                struct bridge_state *state;
                struct bridge_waiter *waiter; /* nullptr = free */
                int fd;
                pthread_t thread;
        } places[BRIDGE_WAITERS];
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER, .interrupt = PTHREAD_COND_INITIALIZER};

static void *wait_for_lock(void *argument) {
        struct waiting *own = argument;
        struct bridge_waiter *waiter = own->waiter;
        /* Its owner may take the lock twice, so no record is needed. */
        struct bridge_slot slot = {};
        struct bridge_thread thread = {.state = own->state, .slot = &slot};
        struct fuse_in_header head = waiter->head;
        int r = take(own->fd, &waiter->lock, true);

        (void) pthread_mutex_lock(&waiting.lock);
        own->waiter = nullptr;
        (void) pthread_mutex_unlock(&waiting.lock);
        bridge_reply_error(&thread, &head, r);
        waiter->head.unique = 0;
        return nullptr;
}

/* Called with the waiters' lock. */
static int start_waiting(struct bridge_state *state, struct bridge_waiter *waiter, int fd) {
        struct waiting *own = &waiting.places[waiter - state->shared->waiters];
        pthread_attr_t attributes;
        int r;

        *own = (struct waiting) {.state = state, .waiter = waiter, .fd = fd};
        (void) pthread_attr_init(&attributes);
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void) pthread_attr_setstacksize(&attributes, 256 << 10);
        r = -pthread_create(&own->thread, &attributes, wait_for_lock, own);
        if (r < 0)
                own->waiter = nullptr;
        (void) pthread_attr_destroy(&attributes);
        return r;
}

/* Returns -ENOLCK if too many wait. */
static int wait_in_thread(struct bridge_thread *thread, const struct bridge_request *request, int fd) {
        struct bridge_waiter *waiters = bridge_shared(thread)->waiters;
        int r = -ENOLCK;

        (void) pthread_mutex_lock(&waiting.lock);
        for (size_t i = 0; i < BRIDGE_WAITERS; i++) {
                if (waiters[i].head.unique != 0 || waiting.places[i].waiter)
                        continue;
                waiters[i].interrupted = false;
                waiters[i].lock = *(const struct fuse_lk_in *) request->argument;
                waiters[i].head = *request->head;
                waiters[i].head.unique = 0;
                __atomic_store_n(&waiters[i].head.unique, request->head->unique, __ATOMIC_SEQ_CST);
                r = start_waiting(thread->state, &waiters[i], fd);
                if (r < 0)
                        waiters[i].head.unique = 0;
                break;
        }
        (void) pthread_mutex_unlock(&waiting.lock);
        return r;
}

/* A server died after it had recorded the wait and before it was done with the request. The wait
 * stands for the request from here on: done twice, it could take the lock again after the pod has
 * released it. */
static void finish_request(struct bridge_shared *shared, uint64_t unique) {
        for (size_t i = 0; i < BRIDGE_THREADS; i++)
                if (bridge_request_head(shared->requests[i])->unique == unique)
                        shared->slots[i].answered = unique;
}

void bridge_lock_resume(struct bridge_state *state) {
        struct bridge_thread thread = {.state = state};

        (void) pthread_mutex_lock(&waiting.lock);
        for (size_t i = 0; i < BRIDGE_WAITERS; i++) {
                struct bridge_waiter *waiter = &state->shared->waiters[i];
                int fd;

                if (waiter->head.unique == 0)
                        continue;
                finish_request(state->shared, waiter->head.unique);
                fd = lock_fd(&thread, &waiter->head, &waiter->lock);
                if (fd >= 0)
                        (void) start_waiting(state, waiter, fd);
        }
        (void) pthread_mutex_unlock(&waiting.lock);
}

/* Whether a thread is about to wait. */
static bool is_beginning(const struct bridge_shared *shared, uint64_t unique) {
        for (size_t i = 0; i < BRIDGE_THREADS; i++) {
                const struct fuse_in_header *head = bridge_request_head(shared->requests[i]);

                if (head->unique == unique && head->opcode == FUSE_SETLKW && shared->slots[i].answered != unique)
                        return true;
        }
        return false;
}

void bridge_lock_interrupt(struct bridge_thread *thread, const struct bridge_request *request) {
        struct bridge_shared *shared = bridge_shared(thread);
        uint64_t unique = ((const struct fuse_interrupt_in *) request->argument)->unique;
        bool found = false, early = false;

        (void) pthread_mutex_lock(&waiting.lock);
        for (size_t i = 0; i < BRIDGE_WAITERS; i++)
                if (shared->waiters[i].head.unique == unique)
                        found = shared->waiters[i].interrupted = true;
        early = !found && is_beginning(shared, unique);
        (void) pthread_cond_signal(&waiting.interrupt);
        (void) pthread_mutex_unlock(&waiting.lock);
        if (!early) {
                bridge_reply_none(thread, request->head);
                return;
        }
        (void) poll(nullptr, 0, EARLY_MS);
        bridge_reply_error(thread, request->head, -EAGAIN);
}

/* A signal that arrives before the system call does not end it, so it is sent until the thread has
 * answered. Called with the waiters' lock. */
static bool signal_interrupted(void) {
        bool found = false;

        for (size_t i = 0; i < BRIDGE_WAITERS; i++)
                if (waiting.places[i].waiter && waiting.places[i].waiter->interrupted) {
                        (void) pthread_kill(waiting.places[i].thread, SIGUSR1);
                        found = true;
                }
        return found;
}

void bridge_lock_interrupt_loop(void) {
        (void) pthread_mutex_lock(&waiting.lock);
        for (;;) {
                if (!signal_interrupted()) {
                        (void) pthread_cond_wait(&waiting.interrupt, &waiting.lock);
                        continue;
                }
                (void) pthread_mutex_unlock(&waiting.lock);
                (void) poll(nullptr, 0, INTERRUPT_MS);
                (void) pthread_mutex_lock(&waiting.lock);
        }
}

/* ---- requests ---- */

static void get_lock(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_lk_in *argument = request->argument;
        int fd = owner_fd(thread, request->head->nodeid, argument->owner, true), r = fd < 0 ? fd : 0;
        struct flock range = range_of(&argument->lk);
        struct fuse_lk_out reply = {};

        if (r == 0)
                r = fcntl(fd, F_OFD_GETLK, &range) < 0 ? -errno : 0;
        reply.lk = (struct fuse_file_lock) {
                .type = (uint32_t) range.l_type,
                .start = (uint64_t) range.l_start,
                .end = range.l_len > 0 ? (uint64_t) (range.l_start + range.l_len - 1) : INT64_MAX,
                .pid = range.l_pid > 0 ? (uint32_t) range.l_pid : 0,
        };
        bridge_reply(thread, request->head, r, &reply, sizeof reply);
}

void bridge_lock(struct bridge_thread *thread, const struct bridge_request *request) {
        const struct fuse_lk_in *argument = request->argument;
        int fd, r;

        if (request->head->opcode == FUSE_GETLK) {
                get_lock(thread, request);
                return;
        }
        fd = lock_fd(thread, request->head, argument);
        r = fd < 0 ? fd : take(fd, argument, false);
        if (fd == -ENOLCK && argument->lk.type == F_UNLCK)
                r = 0; /* this owner has no locks */
        if (request->head->opcode == FUSE_SETLKW && (r == -EAGAIN || r == -EACCES)) {
                r = wait_in_thread(thread, request, fd);
                if (r == 0) {
                        bridge_reply_none(thread, request->head);
                        return;
                }
        }
        bridge_reply_error(thread, request->head, r);
}

void bridge_lock_unlock_all(struct bridge_thread *thread, uint64_t node, uint64_t owner) {
        struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
        int fd = owner_fd(thread, node, owner, false);

        if (fd >= 0)
                (void) fcntl(fd, F_OFD_SETLK, &all);
}
