/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - see node.h */
#include "bridge/node.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "base/assert.h"

enum {
        DEPTH_MOST = 4096, /* directories above a file, when it is found by names */
        MOST_OPEN = 2048,
};

static constexpr long xfs_magic = 0x58465342;

/* ---- file handles ---- */

struct handle {
        struct file_handle head;
        unsigned char bytes[BRIDGE_HANDLE];
};
static_assert(offsetof(struct handle, bytes) == offsetof(struct file_handle, f_handle));

static bool handle_of_name(int fd, const char *name, struct handle *ret) {
        int mount;

        ret->head.handle_bytes = BRIDGE_HANDLE;
        return name_to_handle_at(fd, name, &ret->head, &mount, *name == '\0' ? AT_EMPTY_PATH : 0) == 0;
}

static bool handle_of(int fd, struct handle *ret) {
        return handle_of_name(fd, "", ret);
}

static int open_handle(const struct bridge_state *state, const struct bridge_node *node) {
        struct handle handle = {.head = {.handle_bytes = node->handle.length, .handle_type = node->handle_type}};

        nd_assert(node->handle.length <= BRIDGE_HANDLE);
        memcpy(handle.bytes, bridge_state_cell_get(state, &node->handle), node->handle.length);
        return open_by_handle_at(state->shared->mount, &handle.head, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* FNV-1a; not for hostile input: it only tells files apart that have the same inode number. */
static uint64_t identity_of(const struct handle *handle) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (unsigned i = 0; i < handle->head.handle_bytes; i++)
                hash = (hash ^ handle->bytes[i]) * UINT64_C(1099511628211);
        return hash;
}

/* ---- what the filesystem can do ---- */

/* Handles of a FUSE filesystem are valid only while the inode is cached. */
static bool has_handles(const struct bridge_shared *shared) {
        struct handle handle;
        nd_autoclose int fd = -EBADF;

        if (shared->facts.fuse || shared->mount < 0 || !handle_of(shared->root, &handle))
                return false;
        fd = open_by_handle_at(shared->mount, &handle.head, O_PATH | O_CLOEXEC);
        return fd >= 0;
}

/* NFSv4 and SMB have no POSIX ACLs: the kernel would take EOPNOTSUPP for a denial. */
static bool has_acl(const struct bridge_shared *shared) {
        char value[1024];

        return shared->mount >= 0 && (fgetxattr(shared->mount, "system.posix_acl_access", value, sizeof value) >= 0 ||
                                      errno == ENODATA || errno == ERANGE);
}

struct nd_error *bridge_node_root(struct bridge_state *state) {
        struct bridge_shared *shared = state->shared;
        struct bridge_facts *facts = &shared->facts;
        struct bridge_node *node;
        struct statfs fs;
        struct stat st;

        if (fstat(shared->root, &st) < 0 || fstatfs(shared->root, &fs) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "read the volume's attributes");
        facts->nfs = fs.f_type == NFS_SUPER_MAGIC;
        facts->fuse = fs.f_type == FUSE_SUPER_MAGIC;
        facts->remote = fs.f_type != EXT4_SUPER_MAGIC && fs.f_type != TMPFS_MAGIC && fs.f_type != xfs_magic &&
                        fs.f_type != OVERLAYFS_SUPER_MAGIC && fs.f_type != BTRFS_SUPER_MAGIC;
        facts->stack_depth = fs.f_type == OVERLAYFS_SUPER_MAGIC ? 2 : 1;
        /* These open a backing file with the IDs of the process in the pod, not with those of the
         * registration. A 9p server does not know them, and a FUSE driver may refuse them. */
        if (fs.f_type == V9FS_MAGIC || facts->fuse)
                shared->settings.passthrough = false;
        facts->acl = has_acl(shared);
        facts->handles = has_handles(shared);
        node = bridge_state_node_new(state);
        nd_assert(bridge_state_node_id(state, node) == FUSE_ROOT_ID);
        node->fd = shared->root;
        node->device = st.st_dev;
        node->inode = st.st_ino;
        node->mode = st.st_mode;
        node->lookups = 1;
        bridge_state_node_publish(state, node);
        return nullptr;
}

/* ---- descriptors ---- */

static void lock(struct bridge_state *state) {
        (void) pthread_mutex_lock(&state->lock);
}

static void unlock(struct bridge_state *state) {
        (void) pthread_mutex_unlock(&state->lock);
}

static bool may_close(const struct bridge_state *state, const struct bridge_node *node) {
        return node->used && node->fd >= 0 && node->busy == 0 && node->opens == 0 && !node->removed &&
               bridge_state_node_id(state, node) != FUSE_ROOT_ID;
}

static void close_node(struct bridge_state *state, struct bridge_node *node) {
        bridge_state_close(&node->fd);
        state->open_nodes--;
}

/* Closes an eighth of the descriptors if there are too many: the clock algorithm. */
static void make_room(struct bridge_state *state) {
        uint32_t top = state->shared->top_node;

        if (state->open_nodes < MOST_OPEN)
                return;
        for (uint32_t looked = 0; looked < top && state->open_nodes > MOST_OPEN / 8 * 7; looked++) {
                state->hand = state->hand >= top ? 1 : state->hand + 1;
                if (may_close(state, &state->shared->nodes[state->hand]))
                        close_node(state, &state->shared->nodes[state->hand]);
        }
}

static int open_by_name(struct bridge_state *state, struct bridge_node *node, int depth);

static int ensure_fd(struct bridge_state *state, struct bridge_node *node, int depth) {
        int fd;

        if (node->fd >= 0)
                return 0;
        if (depth == 0)
                make_room(state);
        if (node->handle.index > 0)
                fd = open_handle(state, node);
        else
                fd = open_by_name(state, node, depth);
        if (fd < 0)
                return node->handle.index > 0 ? -errno : fd;
        node->fd = fd;
        state->open_nodes++;
        return 0;
}

static int open_by_name(struct bridge_state *state, struct bridge_node *node, int depth) {
        struct bridge_node *parent = &state->shared->nodes[node->parent];
        char name[NAME_MAX + 1] = "";
        nd_autoclose int fd = -EBADF;
        struct stat st;

        if (depth >= DEPTH_MOST || node->removed || node->name.index == 0 || !parent->used ||
            ensure_fd(state, parent, depth + 1) < 0)
                return -ESTALE;
        memcpy(name, bridge_state_cell_get(state, &node->name), node->name.length);
        fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != node->device || st.st_ino != node->inode)
                return -ESTALE;
        return nd_take_fd(fd);
}

int bridge_node_get(struct bridge_state *state, uint64_t id, struct bridge_node **ret) {
        struct bridge_node *node = &state->shared->nodes[id % BRIDGE_NODES];
        int r = -ESTALE;

        lock(state);
        if (id > 0 && id < BRIDGE_NODES && node->used)
                r = ensure_fd(state, node, 0);
        if (r == 0) {
                node->busy++;
                *ret = node;
        }
        unlock(state);
        return r;
}

/* Returns the descriptor of a node that was freed, to be closed without the lock. */
[[nodiscard]] static int free_unused(struct bridge_state *state, struct bridge_node *node) {
        if (node->used && node->lookups == 0 && node->opens == 0 && node->busy == 0 &&
            bridge_state_node_id(state, node) != FUSE_ROOT_ID)
                return bridge_state_node_free(state, node);
        return -EBADF;
}

void bridge_node_put(struct bridge_state *state, struct bridge_node *node) {
        int fd;

        if (!node)
                return;
        lock(state);
        nd_assert(node->busy > 0);
        node->busy--;
        fd = free_unused(state, node);
        unlock(state);
        nd_close_fd(&fd);
}

void bridge_node_forget(struct bridge_state *state, uint64_t id, uint64_t count) {
        struct bridge_node *node = &state->shared->nodes[id % BRIDGE_NODES];
        int fd = -EBADF;

        if (id <= FUSE_ROOT_ID || id >= BRIDGE_NODES)
                return;
        lock(state);
        if (node->used) {
                node->lookups = node->lookups > count ? node->lookups - count : 0;
                fd = free_unused(state, node);
        }
        unlock(state);
        nd_close_fd(&fd);
}

/* ---- looking up ---- */

int bridge_node_stat(const struct bridge_thread *thread, int fd, struct stat *ret) {
        struct statx x;

        if (!bridge_shared(thread)->facts.fuse)
                return fstatat(fd, "", ret, AT_EMPTY_PATH) < 0 ? -errno : 0;
        /* The kernel caches what we answer: two caches would add up. */
        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &x) < 0)
                return -errno;
        *ret = (struct stat) {
                .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
                .st_ino = x.stx_ino,
                .st_mode = x.stx_mode,
                .st_nlink = x.stx_nlink,
                .st_uid = x.stx_uid,
                .st_gid = x.stx_gid,
                .st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor),
                .st_size = (off_t) x.stx_size,
                .st_blocks = (blkcnt_t) x.stx_blocks,
                .st_blksize = (blksize_t) x.stx_blksize,
                .st_atim = {.tv_sec = x.stx_atime.tv_sec, .tv_nsec = x.stx_atime.tv_nsec},
                .st_mtim = {.tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec},
                .st_ctim = {.tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec},
        };
        return 0;
}

static struct bridge_node *find(const struct bridge_state *state, const struct stat *st, uint64_t identity) {
        struct bridge_node *node = nullptr;

        while ((node = bridge_state_node_find(state, st->st_dev, st->st_ino, node)))
                if (node->identity == identity)
                        return node;
        return nullptr;
}

static struct bridge_node *make_node(struct bridge_state *state, const struct stat *st, const struct handle *handle,
                                     uint64_t identity) {
        struct bridge_node *node = bridge_state_node_new(state);

        if (!node)
                return nullptr;
        node->device = st->st_dev;
        node->inode = st->st_ino;
        node->identity = identity;
        node->mode = st->st_mode;
        if (identity != 0) {
                node->handle_type = handle->head.handle_type;
                if (!bridge_state_cell_set(state, &node->handle, handle->bytes, handle->head.handle_bytes))
                        node->identity = 0;
        }
        bridge_state_node_publish(state, node);
        return node;
}

static int64_t changed_at(const struct stat *st) {
        return st->st_ctim.tv_sec * INT64_C(1'000'000'000) + st->st_ctim.tv_nsec;
}

void bridge_node_note(struct bridge_node *node, const struct stat *st) {
        node->size = st->st_size;
        node->changed = changed_at(st);
}

bool bridge_node_has(const struct bridge_node *node, const struct stat *st) {
        return node->size == st->st_size && node->changed == changed_at(st);
}

int bridge_node_intern(struct bridge_thread *thread, int owned_fd, const struct stat *st, struct bridge_node *parent,
                       const char *name, uint64_t *ret_id) {
        struct bridge_state *state = thread->state;
        struct bridge_slot *slot = thread->slot;
        nd_autoclose int fd = owned_fd;
        struct handle handle;
        uint64_t identity = state->shared->facts.handles && handle_of(fd, &handle) ? identity_of(&handle) : 0;
        struct bridge_node *node;

        lock(state);
        node = find(state, st, identity) ?: make_node(state, st, &handle, identity);
        if (!node) {
                unlock(state);
                return -ENFILE;
        }
        if (node->fd < 0) {
                make_room(state);
                node->fd = nd_take_fd(fd);
                state->open_nodes++;
        }
        if (name && (identity == 0 || state->shared->facts.nfs)) {
                (void) bridge_state_cell_set(state, &node->name, name, strlen(name));
                node->parent = bridge_state_node_id(state, parent);
        }
        bridge_node_note(node, st);
        node->lookups++;
        if (slot->grants < BRIDGE_GRANTS) {
                slot->granted[slot->grants] = bridge_state_node_id(state, node);
                slot->grants++;
        }
        *ret_id = bridge_state_node_id(state, node);
        unlock(state);
        return 0;
}

int bridge_node_lookup(struct bridge_thread *thread, struct bridge_node *parent, const char *name, struct stat *ret_st,
                       uint64_t *ret_id) {
        nd_autoclose int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : bridge_node_stat(thread, fd, ret_st);

        return r < 0 ? r : bridge_node_intern(thread, nd_take_fd(fd), ret_st, parent, name, ret_id);
}

/* ---- opening ---- */

struct bridge_fd_name bridge_fd_name(int fd) {
        struct bridge_fd_name name;

        (void) snprintf(name.text, sizeof name.text, "%d", fd);
        return name;
}

/* Whether an open file is the node's, and not another one that has its name or number now. */
static bool is_same(const struct bridge_node *node, int fd) {
        struct handle handle;
        struct stat st;

        if (fstat(fd, &st) < 0 || st.st_dev != node->device || st.st_ino != node->inode)
                return false;
        return node->identity == 0 || !handle_of(fd, &handle) || identity_of(&handle) == node->identity;
}

/* Copies the node's name; false if it has none. */
static bool name_of(struct bridge_state *state, const struct bridge_node *node, char ret[static NAME_MAX + 1],
                    uint32_t *ret_parent) {
        bool found;

        lock(state);
        found = node->name.index > 0 && !node->removed;
        if (found) {
                memcpy(ret, bridge_state_cell_get(state, &node->name), node->name.length);
                ret[node->name.length] = '\0';
                *ret_parent = node->parent;
        }
        unlock(state);
        return found;
}

/* As a program on the node would open it: only so does NFS ask the server which file has the name
 * now. Returns -ESTALE if it is not this one, or cannot be told. */
static int open_named(struct bridge_thread *thread, struct bridge_node *node, int flags) {
        struct bridge_node *parent = nullptr;
        nd_autoclose int fd = -EBADF;
        char name[NAME_MAX + 1];
        uint32_t parent_id;
        int error;

        if (!name_of(thread->state, node, name, &parent_id))
                return -ESTALE;
        if (bridge_node_get(thread->state, parent_id, &parent) != 0 || !parent)
                return -ESTALE;
        fd = openat(parent->fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        error = errno;
        bridge_node_put(thread->state, parent);
        if (fd < 0)
                return error == EACCES || error == EPERM || error == EROFS || error == EDQUOT || error == ENOSPC ? -error
                                                                                                                 : -ESTALE;
        if (!is_same(node, fd))
                return -ESTALE;
        if (!(flags & O_NONBLOCK))
                (void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        return nd_take_fd(fd);
}

int bridge_node_open(struct bridge_thread *thread, struct bridge_node *node, int flags) {
        int fd = -ESTALE;

        if (bridge_shared(thread)->facts.nfs)
                fd = open_named(thread, node, flags);
        if (fd != -ESTALE)
                return fd;
        /* The current directory is that of our descriptors. */
        fd = open(bridge_fd_name(node->fd).text, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

void bridge_node_release(struct bridge_state *state, uint64_t handle) {
        struct bridge_shared *shared = state->shared;
        struct bridge_file *file;
        struct bridge_node *node;
        int fd, node_fd;
        uint32_t id;

        lock(state);
        file = bridge_state_file_get(state, handle);
        if (!file) {
                unlock(state);
                return;
        }
        id = file->node;
        node = &shared->nodes[id];
        fd = bridge_state_file_free(state, file);
        if (node->opens > 0 && --node->opens == 0) {
                int32_t backing = node->backing;

                node->backing = 0;
                if (backing > 0)
                        (void) ioctl(shared->device, FUSE_DEV_IOC_BACKING_CLOSE, &backing);
                for (size_t i = 0; state->held_locks > 0 && i < BRIDGE_LOCKS; i++)
                        if (shared->locks[i].used && shared->locks[i].node == id) {
                                __atomic_store_n(&shared->locks[i].used, false, __ATOMIC_SEQ_CST);
                                bridge_state_close(&shared->locks[i].fd);
                                state->held_locks--;
                        }
        }
        node_fd = free_unused(state, node);
        unlock(state);
        nd_close_fd(&fd);
        nd_close_fd(&node_fd);
}

/* ---- names that change ---- */

uint64_t bridge_node_let_go(struct bridge_thread *thread, struct bridge_node *parent, const char *name,
                            struct bridge_named *ret) {
        struct bridge_state *state = thread->state;
        struct bridge_node *node;
        struct handle handle;

        *ret = (struct bridge_named) {};
        if (fstatat(parent->fd, name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0) {
                ret->st.st_ino = 0;
                return 0;
        }
        if (state->shared->facts.handles && handle_of_name(parent->fd, name, &handle))
                ret->identity = identity_of(&handle);
        if (!state->shared->facts.nfs)
                return ret->st.st_ino;
        lock(state);
        node = find(state, &ret->st, ret->identity);
        if (node && may_close(state, node) && node->handle.index > 0)
                close_node(state, node);
        unlock(state);
        return ret->st.st_ino;
}

/* A file with other names keeps its node; it is found by its handle, or by the next lookup. */
void bridge_node_removed(struct bridge_state *state, const struct bridge_named *named) {
        struct bridge_node *node;

        if (named->st.st_ino == 0)
                return;
        lock(state);
        node = find(state, &named->st, named->identity);
        if (node)
                bridge_state_cell_clear(state, &node->name);
        if (node && (named->st.st_nlink <= 1 || S_ISDIR(named->st.st_mode))) {
                node->removed = true;
                bridge_state_node_unhash(state, node);
        }
        unlock(state);
}

void bridge_node_renamed(struct bridge_state *state, const struct stat *st, const struct bridge_node *parent,
                         const char *name) {
        struct bridge_node *node = nullptr;

        if (st->st_ino == 0)
                return;
        lock(state);
        while ((node = bridge_state_node_find(state, st->st_dev, st->st_ino, node)))
                if (node->name.index > 0) {
                        (void) bridge_state_cell_set(state, &node->name, name, strlen(name));
                        node->parent = bridge_state_node_id(state, parent);
                }
        unlock(state);
}
