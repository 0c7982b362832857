/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - see state.h */
#include "bridge/state.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/assert.h"
#include "sys/calls.h"

enum {
        MOUNT_TIMEOUT_S = 30,
};

static constexpr size_t cell_count = (size_t) 2 * BRIDGE_NODES;

/* Where the cells of a kind begin. Kind k has cells of 32 << k bytes. */
static size_t cells_offset(unsigned kind) {
        return cell_count * BRIDGE_CELL_LEAST * ((1u << kind) - 1);
}

static size_t cell_size(unsigned kind) {
        return (size_t) BRIDGE_CELL_LEAST << kind;
}

static size_t memory_size(void) {
        return sizeof(struct bridge_shared) + cells_offset(BRIDGE_CELL_KINDS);
}

static struct nd_error *map_memory(int fd, struct bridge_state *ret) {
        /* Sparse: only pages that are used take memory. */
        void *memory = mmap(nullptr, memory_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

        if (memory == MAP_FAILED)
                return nd_error_new(nd_error_code_of(errno), errno, "map the state");
        *ret = (struct bridge_state) {.shared = memory, .fd = fd, .lock = PTHREAD_MUTEX_INITIALIZER};
        return nullptr;
}

struct nd_error *bridge_state_make(struct bridge_state *ret) {
        nd_autoclose int fd = memfd_create("nodens-bridge", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

        if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
                fd = memfd_create("nodens-bridge", MFD_CLOEXEC);
        if (fd < 0 || nd_sys->ftruncate(fd, (off_t) memory_size()) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "allocate the state");
        nd_try(map_memory(fd, ret));
        nd_take_fd(fd);
        ret->shared->version = BRIDGE_STATE_VERSION;
        ret->shared->size = memory_size();
        ret->shared->device = ret->shared->root = ret->shared->mount = ret->shared->proc = -EBADF;
        for (size_t i = 0; i < BRIDGE_PROCESSES; i++)
                ret->shared->processes[i] = -EBADF;
        return nullptr;
}

struct nd_error *bridge_state_map(int fd, struct bridge_state *ret) {
        struct stat st;
        uint32_t version;

        if (fstat(fd, &st) < 0 || st.st_size != (off_t) memory_size())
                return nd_error_new(ND_PRECONDITION, 0, "the state is of another version of nodens-bridge");
        nd_try(map_memory(fd, ret));
        version = ret->shared->version;
        if (version == BRIDGE_STATE_VERSION)
                return nullptr;
        (void) munmap(ret->shared, memory_size());
        return nd_error_new(ND_PRECONDITION, 0, "the state has version %u, this program needs %u", version,
                            (unsigned) BRIDGE_STATE_VERSION);
}

void bridge_state_set_mounted(struct bridge_state *state) {
        __atomic_store_n(&state->shared->mounted, 1, __ATOMIC_SEQ_CST);
        (void) syscall(SYS_futex, &state->shared->mounted, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void bridge_state_set_waiting(struct bridge_state *state) {
        __atomic_store_n(&state->shared->mounted, 0, __ATOMIC_SEQ_CST);
}

bool bridge_state_wait_mounted(const struct bridge_state *state) {
        const struct timespec timeout = {.tv_sec = MOUNT_TIMEOUT_S};

        return syscall(SYS_futex, &state->shared->mounted, FUTEX_WAIT, 0, &timeout, nullptr, 0) == 0 || errno == EAGAIN;
}

void bridge_state_close(int32_t *fd) {
        int old = __atomic_exchange_n(fd, -EBADF, __ATOMIC_SEQ_CST);

        if (old >= 0)
                (void) close(old);
}

/* ---- cells ---- */

static unsigned char *cell_at(const struct bridge_state *state, unsigned kind, uint32_t index) {
        return state->shared->cells + cells_offset(kind) + index * cell_size(kind);
}

const unsigned char *bridge_state_cell_get(const struct bridge_state *state, const struct bridge_cell *cell) {
        return cell->index > 0 ? cell_at(state, cell->kind, cell->index) : nullptr;
}

static void cell_release(struct bridge_state *state, unsigned kind, uint32_t index) {
        memcpy(cell_at(state, kind, index), &state->free_cell[kind], sizeof(uint32_t));
        state->free_cell[kind] = index;
}

static void cell_replace(struct bridge_state *state, struct bridge_cell *cell, struct bridge_cell new) {
        struct bridge_cell old = *cell;

        __atomic_store(cell, &new, __ATOMIC_SEQ_CST);
        if (old.index > 0)
                cell_release(state, old.kind, old.index);
}

void bridge_state_cell_clear(struct bridge_state *state, struct bridge_cell *cell) {
        cell_replace(state, cell, (struct bridge_cell) {});
}

bool bridge_state_cell_set(struct bridge_state *state, struct bridge_cell *cell, const void *bytes, size_t length) {
        struct bridge_cell new = {.length = (uint8_t) length};

        if (length > UINT8_MAX)
                return false;
        while (cell_size(new.kind) < length)
                new.kind++;
        if (cell->index > 0 && cell->length == length && memcmp(cell_at(state, cell->kind, cell->index), bytes, length) == 0)
                return true;
        new.index = state->free_cell[new.kind];
        if (new.index > 0)
                memcpy(&state->free_cell[new.kind], cell_at(state, new.kind, new.index), sizeof(uint32_t));
        else if (state->shared->top_cell[new.kind] + 1 < cell_count)
                new.index = ++state->shared->top_cell[new.kind];
        else
                return false;
        memcpy(cell_at(state, new.kind, new.index), bytes, length);
        cell_replace(state, cell, new);
        return true;
}

/* ---- nodes ---- */

static uint32_t *bucket_of(const struct bridge_state *state, uint64_t device, uint64_t inode) {
        /* Fibonacci hashing: inode numbers often differ in their low bits only. */
        uint64_t mixed = (inode ^ device * 31) * UINT64_C(0x9e3779b97f4a7c15);

        return &state->shared->buckets[mixed >> 48];
}
static_assert(BRIDGE_BUCKETS == 1 << 16);

struct bridge_node *bridge_state_node_new(struct bridge_state *state) {
        struct bridge_shared *shared = state->shared;
        struct bridge_node *node;

        if (state->free_node > 0) {
                node = &shared->nodes[state->free_node];
                state->free_node = node->next;
        } else if (shared->top_node + 1 < BRIDGE_NODES) {
                node = &shared->nodes[++shared->top_node];
        } else {
                return nullptr;
        }
        *node = (struct bridge_node) {.fd = -EBADF};
        return node;
}

static void hash_node(struct bridge_state *state, struct bridge_node *node) {
        uint32_t *bucket = bucket_of(state, node->device, node->inode);

        node->next = *bucket;
        *bucket = bridge_state_node_id(state, node);
        node->hashed = true;
}

void bridge_state_node_publish(struct bridge_state *state, struct bridge_node *node) {
        hash_node(state, node);
        __atomic_store_n(&node->used, true, __ATOMIC_SEQ_CST);
}

void bridge_state_node_unhash(struct bridge_state *state, struct bridge_node *node) {
        uint32_t id = bridge_state_node_id(state, node);

        if (!node->hashed)
                return;
        for (uint32_t *at = bucket_of(state, node->device, node->inode); *at > 0; at = &state->shared->nodes[*at].next)
                if (*at == id) {
                        *at = node->next;
                        break;
                }
        node->hashed = false;
}

/* Clears the number in a record: a death before the close leaves a descriptor without a record. */
static int take_fd(int32_t *fd) {
        return __atomic_exchange_n(fd, -EBADF, __ATOMIC_SEQ_CST);
}

int bridge_state_node_free(struct bridge_state *state, struct bridge_node *node) {
        int fd;

        bridge_state_node_unhash(state, node);
        __atomic_store_n(&node->used, false, __ATOMIC_SEQ_CST);
        fd = take_fd(&node->fd);
        if (fd >= 0)
                state->open_nodes--;
        bridge_state_cell_clear(state, &node->handle);
        bridge_state_cell_clear(state, &node->name);
        node->next = state->free_node;
        state->free_node = bridge_state_node_id(state, node);
        return fd;
}

struct bridge_node *bridge_state_node_find(const struct bridge_state *state, uint64_t device, uint64_t inode,
                                           const struct bridge_node *after) {
        for (uint32_t id = after ? after->next : *bucket_of(state, device, inode); id > 0;
             id = state->shared->nodes[id].next) {
                struct bridge_node *node = &state->shared->nodes[id];

                if (node->device == device && node->inode == inode)
                        return node;
        }
        return nullptr;
}

/* ---- files ---- */

uint64_t bridge_state_file_new(struct bridge_state *state, int fd, struct bridge_node *node) {
        struct bridge_shared *shared = state->shared;
        uint32_t index = state->free_file, generation;
        struct bridge_file *file;

        if (index > 0)
                state->free_file = shared->files[index].next;
        else if (shared->top_file + 1 < BRIDGE_FILES)
                index = ++shared->top_file;
        else
                return 0;
        file = &shared->files[index];
        generation = ++shared->generation;
        *file = (struct bridge_file) {.fd = fd, .node = bridge_state_node_id(state, node), .generation = generation};
        node->opens++;
        __atomic_store_n(&file->used, true, __ATOMIC_SEQ_CST);
        return (uint64_t) generation << 32 | index;
}

struct bridge_file *bridge_state_file_get(const struct bridge_state *state, uint64_t handle) {
        uint32_t index = (uint32_t) handle;
        struct bridge_file *file = &state->shared->files[index % BRIDGE_FILES];

        return index > 0 && index < BRIDGE_FILES && file->used && file->generation == handle >> 32 ? file : nullptr;
}

int bridge_state_file_free(struct bridge_state *state, struct bridge_file *file) {
        int fd;

        __atomic_store_n(&file->used, false, __ATOMIC_SEQ_CST);
        fd = take_fd(&file->fd);
        file->next = state->free_file;
        state->free_file = (uint32_t) (file - state->shared->files);
        return fd;
}

/* ---- recovery ---- */

static void recover_files(struct bridge_state *state) {
        struct bridge_shared *shared = state->shared;

        for (uint32_t id = 1; id <= shared->top_node; id++)
                shared->nodes[id].opens = 0;
        state->free_file = 0;
        for (uint32_t i = shared->top_file; i > 0; i--) {
                struct bridge_file *file = &shared->files[i];

                if (file->used) {
                        shared->nodes[file->node].opens++;
                        continue;
                }
                bridge_state_close(&file->fd);
                file->next = state->free_file;
                state->free_file = i;
        }
}

static void recover_cells(struct bridge_state *state) {
        const struct bridge_shared *shared = state->shared;

        for (unsigned kind = 0; kind < BRIDGE_CELL_KINDS; kind++) {
                uint32_t top = shared->top_cell[kind];
                nd_autofree bool *used = nd_calloc((size_t) top + 1, sizeof *used);

                for (uint32_t id = 1; id <= shared->top_node; id++) {
                        const struct bridge_node *node = &shared->nodes[id];

                        if (!node->used)
                                continue;
                        if (node->handle.index > 0 && node->handle.kind == kind)
                                used[node->handle.index] = true;
                        if (node->name.index > 0 && node->name.kind == kind)
                                used[node->name.index] = true;
                }
                state->free_cell[kind] = 0;
                for (uint32_t i = top; i > 0; i--)
                        if (!used[i])
                                cell_release(state, kind, i);
        }
}

static void recover_nodes(struct bridge_state *state) {
        struct bridge_shared *shared = state->shared;

        memset(shared->buckets, 0, sizeof shared->buckets);
        state->free_node = state->open_nodes = 0;
        for (uint32_t id = shared->top_node; id > 0; id--) {
                struct bridge_node *node = &shared->nodes[id];

                node->busy = 0;
                if (node->used && id != FUSE_ROOT_ID && node->lookups == 0 && node->opens == 0)
                        node->used = false;
                if (!node->used) {
                        bridge_state_close(&node->fd);
                        node->handle = node->name = (struct bridge_cell) {};
                        node->next = state->free_node;
                        state->free_node = id;
                        continue;
                }
                state->open_nodes += node->fd >= 0;
                if (node->hashed)
                        hash_node(state, node);
        }
}

void bridge_state_recover(struct bridge_state *state) {
        recover_files(state);
        recover_nodes(state);
        recover_cells(state);
        state->held_locks = 0;
        for (size_t i = 0; i < BRIDGE_LOCKS; i++)
                state->held_locks += state->shared->locks[i].used;
}

static int compare_fds(const void *a, const void *b) {
        return *(const int32_t *) a - *(const int32_t *) b;
}

/* All descriptors of the state, sorted. */
static int32_t *known_fds(const struct bridge_state *state, size_t *ret_count) {
        const struct bridge_shared *shared = state->shared;
        const int32_t fixed[] = {state->fd, shared->device, shared->root, shared->mount, shared->proc};
        size_t capacity = nd_count_of(fixed) + BRIDGE_PROCESSES + (size_t) state->open_nodes + shared->top_file + BRIDGE_LOCKS,
               count = 0;
        int32_t *known = nd_calloc(capacity, sizeof *known);

        for (size_t i = 0; i < nd_count_of(fixed); i++)
                known[count++] = fixed[i];
        for (size_t i = 0; i < BRIDGE_PROCESSES; i++)
                known[count++] = shared->processes[i];
        for (uint32_t id = 1; id <= shared->top_node; id++)
                if (shared->nodes[id].used && shared->nodes[id].fd >= 0) {
                        nd_assert(count < capacity);
                        known[count++] = shared->nodes[id].fd;
                }
        for (uint32_t i = 1; i <= shared->top_file; i++)
                if (shared->files[i].used)
                        known[count++] = shared->files[i].fd;
        for (size_t i = 0; i < BRIDGE_LOCKS; i++)
                if (shared->locks[i].used)
                        known[count++] = shared->locks[i].fd;
        qsort(known, count, sizeof *known, compare_fds);
        *ret_count = count;
        return known;
}

void bridge_state_close_unknown(const struct bridge_state *state) {
        size_t count;
        nd_autofree int32_t *known = known_fds(state, &count);
        unsigned from = STDERR_FILENO + 1;

        for (size_t i = 0; i < count; i++) {
                if (known[i] < (int32_t) from)
                        continue;
                if ((unsigned) known[i] > from)
                        (void) close_range(from, (unsigned) known[i] - 1, 0);
                from = (unsigned) known[i] + 1;
        }
        (void) close_range(from, UINT32_MAX, 0);
}
