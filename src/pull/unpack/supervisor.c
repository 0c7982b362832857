/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c - see supervisor.h
 *
 * Theory of operation
 *   The supervisor is between the fetcher, which talks to the network and may be compromised, and
 *   the daemon, which trusts the supervisor. It takes messages of fixed size (protocol/messages.h)
 *   and forks three workers per blob (worker.h): one decompresses, one hashes, one reads the
 *   archive and makes the tree. The second one parses nothing: its SHA-256 is the layer's diff ID,
 *   and the data that it hashed is the data that the third one got. Only when all three have exited
 *   may the layer be placed: a fourth worker finalizes it on the layers below if it has marks, then
 *   the supervisor computes the chain from the parent's chain and the diff ID, renames the tree to
 *   layers/<chain> and notifies the daemon.
 *   Directories are named by a counter of the supervisor, so no outside data becomes a path here.
 *   A blob may be the content of an artifact's file instead of an archive: then the first worker
 *   copies, the third one writes the file, and its path is part of the diff ID (oci/artifact.h).
 *
 *      if compromised          it can
 *      the fetcher             send messages: have blobs unpacked and placed under their real chain
 *      a decompressor          choose the stream: it is hashed afterwards
 *      a tree worker           choose the tree of the layer whose archive compromised it; no other
 *
 *   The supervisor is PID 1 of its namespace: when it exits, the kernel kills all workers.
 * Owns       slots: one for each blob between its UNPACK and its PLACE.
 * Invariant  layers/ has no writer: workers were waited for, and later ones get it read-only. */
#include "pull/unpack/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "pull/protocol/messages.h"
#include "pull/unpack/layer-paths.h"
#include "pull/unpack/worker.h"
#include "sys/fd-passing.h"
#include "sys/file.h"
#include "sys/own-userns.h"

enum {
        CHANNEL_FD = 3,
        SIGNALS_FD = 4,
        RUNNING = 16, /* limit of concurrently unpacked blobs */
        SLOTS = ND_MANIFEST_LAYERS + RUNNING,
        PIPE = 256 * 1024,
        TEXT = 512,
};

static constexpr uint64_t total_bytes = UINT64_C(64) << 30; /* for all streams of a pull */

/* The workers of a job; finalizing has only one. */
enum part {
        DECOMPRESS,
        HASH,
        TREE,
        PARTS,
};

struct worker {
        pid_t pid; /* 0 = none, or exited */
        int report_fd;
        int status;
        bool reported;
        struct pull_worker_report report;
};

struct slot {
        enum { FREE, UNPACKING, UNPACKED, FINALIZING } state;
        uint32_t id;     /* the fetcher's */
        uint32_t serial; /* name of its directory */
        bool has_parent, cancelled, marks;
        bool killed; /* by us: later exits are not failures of their own */
        int crash;   /* the signal that killed a worker, if we did not send it */
        struct nd_digest parent, diff_id;
        uint64_t size, inodes, stream;
        struct nd_layer_owner owner;
        char file[ND_ARTIFACT_PATH + 1]; /* path of an artifact's file; "" = an archive */
        struct worker workers[PARTS];
};

struct supervisor {
        const struct pull_events *events;
        struct pull_jail_filters filters;
        struct nd_own_userns node;
        uint32_t serial;
        uint64_t left; /* remaining limit of streams */
        bool finished;
        struct slot slots[SLOTS];
};

static void send_reply(struct pull_message_reply *reply, const struct nd_error *error) {
        reply->code = (int32_t) nd_error_code(error);
        reply->error_number = nd_error_errno(error);
        (void) snprintf(reply->text, sizeof reply->text, "%s", nd_error_text(error));
        (void) send(CHANNEL_FD, reply, sizeof *reply, MSG_NOSIGNAL);
}

/* Replies to a job, and frees the slot on an error. Consumes the error. */
static void reply_for_slot(struct slot *slot, enum pull_message_kind kind, const struct nd_digest *digest,
                           struct nd_error *error) {
        struct pull_message_reply reply = {.kind = kind, .id = slot->id};

        if (!error) {
                reply.stream = slot->stream;
                reply.size = slot->size;
                reply.inodes = slot->inodes;
                memcpy(reply.digest, digest->bytes, sizeof reply.digest);
        }
        if (error)
                slot->state = FREE;
        send_reply(&reply, error);
        nd_error_free(error);
}

static void reject(const struct pull_message_job *job, struct nd_error *error) {
        struct pull_message_reply reply = {.kind = job->kind, .id = job->id};

        send_reply(&reply, error);
        nd_error_free(error);
}

static struct slot *find_slot(struct supervisor *s, uint32_t id) {
        for (size_t i = 0; i < SLOTS; i++)
                if (s->slots[i].state != FREE && s->slots[i].id == id)
                        return &s->slots[i];
        return nullptr;
}

static char *work_path(const struct slot *slot, const char *rest) {
        return nd_format("/unpack/work/%u%s", slot->serial, rest);
}

/* ---- existing layers ---- */

static struct nd_digest digest_of(const uint8_t bytes[static SHA256_DIGEST_SIZE]) {
        struct nd_digest digest = {.kind = ND_HASH_SHA256};

        memcpy(digest.bytes, bytes, SHA256_DIGEST_SIZE);
        return digest;
}

static void lookup(const struct pull_message_job *job) {
        struct pull_message_reply reply = {.kind = job->kind, .id = job->id};
        struct nd_digest chain = digest_of(job->chain);
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *path = nullptr;
        struct nd_layer layer;

        error = pull_layer_find(&chain, &layer, &path);
        if (path) {
                reply.found = 1;
                reply.size = layer.size;
                reply.inodes = layer.inodes;
        }
        send_reply(&reply, error);
}

/* ---- workers ---- */

/* Forks one worker. Its report comes through a pipe, which can hold all of it. */
static struct nd_error *start_worker(struct worker *worker, struct pull_worker_plan *plan,
                                     void (*main)(const struct pull_worker_plan *)) {
        int report[2];

        if (nd_sys->pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe for a worker");
        plan->report = report[1];
        worker->pid = fork();
        if (worker->pid == 0) {
                main(plan);
                _exit(EXIT_FAILURE);
        }
        (void) close(report[1]);
        if (worker->pid < 0) {
                worker->pid = 0;
                (void) close(report[0]);
                return nd_error_new(nd_error_code_of(errno), errno, "start a worker to unpack a layer");
        }
        worker->report_fd = report[0];
        return nullptr;
}

static void kill_workers(struct slot *slot) {
        slot->killed = true;
        for (size_t i = 0; i < PARTS; i++)
                if (slot->workers[i].pid > 0)
                        (void) kill(slot->workers[i].pid, SIGKILL);
}

static struct nd_error *make_pipe(int fds[static 2]) {
        if (nd_sys->pipe2(fds, O_CLOEXEC) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create a pipe for a layer");
        /* fewer context switches; the default size works, too */
        (void) fcntl(fds[1], F_SETPIPE_SZ, PIPE);
        return nullptr;
}

static struct nd_error *start_workers(struct supervisor *s, struct slot *slot, const struct pull_message_job *job, int blob,
                                      int available) {
        nd_autoclose int decompressed = -EBADF, to_hash = -EBADF, hashed = -EBADF, to_tree = -EBADF, marks = -EBADF;
        nd_autofree char *work = work_path(slot, ""), *tree = work_path(slot, "/" ND_LAYER_TREE),
                         *marks_path = work_path(slot, "/marks");
        struct pull_worker_plan plan = {.filters = &s->filters,
                                        .squash = nd_own_userns_is_small(&s->node) ? &s->node : nullptr,
                                        .blob_size = job->blob_size,
                                        .ceiling = job->ceiling < s->left ? job->ceiling : s->left,
                                        .compression = (enum nd_oci_compression) job->compression,
                                        .tree = tree,
                                        .lowest = !slot->has_parent,
                                        .file = *slot->file ? slot->file : nullptr};
        int fds[2];

        nd_try(nd_dir_make(AT_FDCWD, work, 0700));
        nd_try(nd_dir_make(AT_FDCWD, tree, 0755));
        marks = nd_sys->openat(AT_FDCWD, marks_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (marks < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s'", marks_path);
        nd_try(make_pipe(fds));
        decompressed = fds[0];
        to_hash = fds[1];
        nd_try(make_pipe(fds));
        hashed = fds[0];
        to_tree = fds[1];

        plan.input = blob;
        plan.output = to_hash;
        plan.available = available;
        nd_try(start_worker(&slot->workers[DECOMPRESS], &plan, pull_worker_decompress));
        plan.input = decompressed;
        plan.output = to_tree;
        nd_try(start_worker(&slot->workers[HASH], &plan, pull_worker_hash));
        plan.input = hashed;
        plan.output = marks;
        return start_worker(&slot->workers[TREE], &plan, pull_worker_tar);
}

static bool busy(const struct slot *slot) {
        return slot->state == UNPACKING || slot->state == FINALIZING;
}

static struct nd_error *take_slot(struct supervisor *s, const struct pull_message_job *job, struct slot **ret) {
        struct slot *found = nullptr;
        size_t running = 0;

        for (size_t i = 0; i < SLOTS; i++) {
                running += busy(&s->slots[i]);
                if (s->slots[i].state == FREE)
                        found = &s->slots[i];
        }
        if (!found || running >= RUNNING)
                return nd_error_new(ND_EXHAUSTED, 0, "too many concurrent layers");
        *found = (struct slot) {.state = UNPACKING,
                                .id = job->id,
                                .serial = s->serial++,
                                .has_parent = job->has_chain != 0,
                                .parent = digest_of(job->chain)};
        memcpy(found->file, job->file, sizeof found->file);
        for (size_t i = 0; i < PARTS; i++)
                found->workers[i].report_fd = -EBADF;
        *ret = found;
        return nullptr;
}

static void complete(struct supervisor *s, struct slot *slot);

static struct nd_error *check_unpack(struct supervisor *s, const struct pull_message_job *job, int blob, int available) {
        if (blob < 0 || available < 0 || job->compression > ND_COMPRESSION_ZSTD || find_slot(s, job->id) ||
            !memchr(job->file, '\0', sizeof job->file))
                return nd_error_new(ND_INVALID, 0, "invalid unpack request");
        return *job->file ? nd_artifact_path_check(job->file) : nullptr;
}

static void unpack(struct supervisor *s, const struct pull_message_job *job, int blob, int available) {
        struct slot *slot = nullptr;
        struct nd_error *error = check_unpack(s, job, blob, available);

        if (!error)
                error = take_slot(s, job, &slot);
        if (error)
                return reject(job, error);
        error = start_workers(s, slot, job, blob, available);
        if (!error)
                return;
        /* Workers that were started must exit before the slot is free. */
        slot->workers[TREE].reported = true;
        slot->workers[TREE].report.code = (int32_t) nd_error_code(error);
        slot->workers[TREE].report.error_number = nd_error_errno(error);
        (void) snprintf(slot->workers[TREE].report.text, WORKER_TEXT, "%s", nd_error_text(error));
        nd_error_free(error);
        kill_workers(slot);
        complete(s, slot);
}

/* ---- placing ---- */

static struct nd_error *write_layer_file(const struct slot *slot) {
        nd_autofree char *path = work_path(slot, "/" ND_LAYER_FILE);
        nd_autofree char *text =
                nd_layer_format(&(struct nd_layer) {.diff_id = slot->diff_id,
                                                    .parent = slot->has_parent ? slot->parent : (struct nd_digest) {},
                                                    .size = slot->size,
                                                    .inodes = slot->inodes,
                                                    .owner = slot->owner});
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        size_t length = strlen(text);

        if (fd < 0 || nd_sys->write(fd, text, length) != (ssize_t) length)
                return nd_error_new(nd_error_code_of(errno), errno, "write " ND_LAYER_FILE);
        return nullptr;
}

static struct nd_error *put_into_place(struct supervisor *s, const struct slot *slot, struct nd_digest *ret_chain) {
        struct nd_digest chain = nd_layer_chain_of(slot->has_parent ? &slot->parent : nullptr, &slot->diff_id);
        char hex[ND_DIGEST_HEX];
        nd_autofree char *work = work_path(slot, ""), *marks = work_path(slot, "/marks"),
                         *place = nd_format("/unpack/layers/%s", nd_digest_hex(&chain, hex));

        if (nd_sys->unlinkat(AT_FDCWD, marks, 0) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "remove '%s'", marks);
        nd_try(write_layer_file(slot));
        if (nd_sys->renameat(AT_FDCWD, work, AT_FDCWD, place) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "put a layer into place");
        pull_event_unpacked(s->events, &chain, &slot->diff_id, slot->has_parent ? &slot->parent : nullptr, slot->size,
                            slot->inodes);
        *ret_chain = chain;
        return nullptr;
}

static void complete_place(struct supervisor *s, struct slot *slot) {
        struct nd_digest chain = {};
        struct nd_error *error;

        for (size_t i = 0; i < PARTS; i++)
                nd_assert(slot->workers[i].pid == 0);
        error = put_into_place(s, slot, &chain);
        slot->state = FREE;
        reply_for_slot(slot, MESSAGE_PLACE, &chain, error);
}

static struct nd_error *start_finalize(struct supervisor *s, struct slot *slot, char *const *lower, size_t count) {
        nd_autofree char *tree = work_path(slot, "/" ND_LAYER_TREE), *marks = work_path(slot, "/marks");
        nd_autoclose int fd = nd_sys->openat(AT_FDCWD, marks, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

        if (fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s'", marks);
        return start_worker(&slot->workers[TREE],
                            &(struct pull_worker_plan) {.filters = &s->filters,
                                                        .squash = nd_own_userns_is_small(&s->node) ? &s->node : nullptr,
                                                        .input = fd,
                                                        .output = -EBADF,
                                                        .tree = tree,
                                                        .lower = lower,
                                                        .lower_count = count},
                            pull_worker_finalize);
}

/* Starts finalizing if needed; otherwise only checks that the parent exists. */
static struct nd_error *finalize(struct supervisor *s, struct slot *slot, bool *ret_started) {
        struct nd_error *error;
        struct nd_layer layer;
        char **lower = nullptr;
        size_t count = 0;

        *ret_started = slot->has_parent && slot->marks;
        if (slot->has_parent && !slot->marks) {
                nd_autofree char *parent = nullptr;

                nd_try(pull_layer_find(&slot->parent, &layer, &parent));
                return parent ? nullptr : nd_error_new(ND_PRECONDITION, 0, "the layer below does not exist");
        }
        if (!*ret_started)
                return nullptr;
        nd_try(pull_layer_tree_paths(&slot->parent, &lower, &count));
        error = start_finalize(s, slot, lower, count);
        pull_layer_tree_paths_free(lower, count);
        return error;
}

static void place(struct supervisor *s, const struct pull_message_job *job) {
        struct slot *slot = find_slot(s, job->id);
        struct nd_error *error;
        bool started;

        if (!slot || slot->state != UNPACKED)
                return reject(job, nd_error_new(ND_INVALID, 0, "invalid place request: no unpacked layer"));
        error = finalize(s, slot, &started);
        if (error)
                reply_for_slot(slot, MESSAGE_PLACE, nullptr, error);
        else if (started)
                slot->state = FINALIZING;
        else
                complete_place(s, slot);
}

/* ---- exits of workers ---- */

static struct nd_error *reported_error(const struct worker *worker) {
        return nd_error_received((enum nd_error_code)(worker->report.code & 15), worker->report.error_number,
                                 worker->report.text);
}

static bool failed(const struct worker *worker) {
        return worker->reported && worker->report.code != ND_OK && !worker->report.quiet;
}

/* Returns why a job failed: the first error in the order of the stream. A worker killed because
 * another one failed has none. */
static struct nd_error *failure(const struct slot *slot) {
        const struct worker *decompressor = &slot->workers[DECOMPRESS], *hash = &slot->workers[HASH],
                            *tree = &slot->workers[TREE];

        if (slot->cancelled)
                return nd_error_new(ND_CANCELLED, 0, "the job was cancelled");
        if (failed(tree) && !tree->report.at_end)
                return reported_error(tree);
        if (failed(decompressor))
                return reported_error(decompressor);
        if (failed(tree))
                return reported_error(tree);
        if (failed(hash))
                return reported_error(hash);
        if (slot->crash > 0)
                return nd_error_new(ND_INTERNAL, 0, "the worker that unpacked a layer was killed by signal %d", slot->crash);
        return nullptr;
}

static bool all_well(const struct slot *slot, enum part first) {
        for (size_t i = first; i < PARTS; i++)
                if (!slot->workers[i].reported || slot->workers[i].report.code != ND_OK || slot->workers[i].status != 0)
                        return false;
        return true;
}

static void complete_unpack(struct supervisor *s, struct slot *slot) {
        const struct pull_worker_report *hash = &slot->workers[HASH].report, *tree = &slot->workers[TREE].report;
        struct nd_error *error = failure(slot);

        if (!error && !all_well(slot, DECOMPRESS))
                error = nd_error_new(ND_INTERNAL, 0, "a worker that unpacked a layer exited without a report");
        if (!error && (tree->size > ND_LAYER_SIZE || tree->inodes > ND_LAYER_SIZE))
                error = nd_error_new(ND_INTERNAL, 0, "invalid size of a layer");
        if (!error) {
                slot->state = UNPACKED;
                slot->diff_id = digest_of(hash->diff_id);
                if (*slot->file)
                        slot->diff_id = nd_artifact_file_id(&slot->diff_id, slot->file);
                slot->stream = hash->stream;
                slot->size = tree->size;
                slot->inodes = tree->inodes;
                slot->marks = tree->marks != 0;
                slot->owner = (struct nd_layer_owner) {.known = true};
                if (memchr(tree->owner.path, '\0', sizeof tree->owner.path))
                        nd_layer_owner_consider(&slot->owner, tree->owner.uid, tree->owner.gid, tree->owner.path);
                s->left -= hash->stream < s->left ? hash->stream : s->left;
        }
        reply_for_slot(slot, MESSAGE_UNPACK, &slot->diff_id, error);
}

static void complete_finalize(struct supervisor *s, struct slot *slot) {
        struct nd_error *error = failure(slot);

        if (!error && !all_well(slot, TREE))
                error = nd_error_new(ND_INTERNAL, 0, "a worker that finalized a layer exited without a report");
        if (error)
                reply_for_slot(slot, MESSAGE_PLACE, nullptr, error);
        else
                complete_place(s, slot);
}

/* Completes a job whose last worker has exited. */
static void complete(struct supervisor *s, struct slot *slot) {
        nd_assert(busy(slot));
        for (size_t i = 0; i < PARTS; i++)
                if (slot->workers[i].pid > 0)
                        return;
        if (slot->state == UNPACKING)
                complete_unpack(s, slot);
        else
                complete_finalize(s, slot);
}

static void worker_ended(struct supervisor *s, struct slot *slot, enum part part, int status) {
        struct worker *w = &slot->workers[part];

        w->pid = 0;
        w->status = status;
        w->reported = read(w->report_fd, &w->report, sizeof w->report) == sizeof w->report;
        w->report.text[sizeof w->report.text - 1] = '\0';
        nd_close_fd(&w->report_fd);
        /* The exit of the archive's reader, or of any worker by a signal, kills the others, which
         * may wait for the network. In other cases they notice from their pipes, after the data in
         * transit. */
        if (WIFSIGNALED(status) && !slot->killed)
                slot->crash = WTERMSIG(status);
        if (status != 0 && (part == TREE || !WIFEXITED(status)))
                kill_workers(slot);
        complete(s, slot);
}

static void reap(struct supervisor *s) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < SLOTS; i++)
                        for (size_t part = 0; busy(&s->slots[i]) && part < PARTS; part++)
                                if (s->slots[i].workers[part].pid == pid)
                                        worker_ended(s, &s->slots[i], (enum part) part, status);
}

/* ---- messages ---- */

static void cancel(struct supervisor *s, uint32_t id) {
        struct slot *slot = find_slot(s, id);

        if (!slot)
                return;
        if (slot->state == UNPACKED) {
                slot->state = FREE;
                return;
        }
        slot->cancelled = true;
        kill_workers(slot);
}

/* Makes all placed layers durable; then the daemon may record them. */
static struct nd_error *finish(struct supervisor *s) {
        nd_autoclose int fd = -EBADF;

        for (size_t i = 0; i < SLOTS; i++)
                if (busy(&s->slots[i]))
                        return nd_error_new(ND_PRECONDITION, 0, "finish request while a layer was being unpacked");
        nd_try(nd_dir_open(AT_FDCWD, "/unpack", &fd));
        if (nd_sys->syncfs(fd) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "sync the image to disk");
        pull_event_synced(s->events);
        s->finished = true;
        return nullptr;
}

/* Handles one message; false at the end. */
static struct nd_error *take_message(struct supervisor *s, bool *ret_more) {
        struct pull_message_job job;
        int fds[2] = {-EBADF, -EBADF};
        ssize_t n = nd_fd_passing_receive(CHANNEL_FD, &job, sizeof job, fds, nd_count_of(fds), MSG_DONTWAIT);
        nd_autoclose int blob = fds[0], available = fds[1];

        *ret_more = n == -EAGAIN || n == sizeof job;
        if (n == -EAGAIN || n == 0 || n == -ECONNRESET) /* ECONNRESET: unread replies */
                return nullptr;
        if (n != sizeof job)
                return nd_error_new(ND_INVALID, n < 0 ? (int) -n : 0, "invalid message from nodens-fetch");
        switch (job.kind) {
        case MESSAGE_LOOKUP:
                lookup(&job);
                return nullptr;
        case MESSAGE_UNPACK:
                unpack(s, &job, blob, available);
                return nullptr;
        case MESSAGE_PLACE:
                place(s, &job);
                return nullptr;
        case MESSAGE_CANCEL:
                cancel(s, job.id);
                return nullptr;
        case MESSAGE_FINISH:
                *ret_more = false;
                return finish(s);
        default:
                return nd_error_new(ND_INVALID, 0, "invalid message from nodens-fetch");
        }
}

static struct nd_error *serve(struct supervisor *s) {
        bool more = true;

        while (more) {
                struct pollfd wait[] = {{.fd = CHANNEL_FD, .events = POLLIN}, {.fd = SIGNALS_FD, .events = POLLIN}};
                struct signalfd_siginfo info;

                if (poll(wait, nd_count_of(wait), -1) < 0 && errno != EINTR)
                        return nd_error_new(ND_INTERNAL, errno, "wait for nodens-fetch");
                if (wait[1].revents && read(SIGNALS_FD, &info, sizeof info) == sizeof info)
                        reap(s);
                if (wait[0].revents)
                        nd_try(take_message(s, &more));
        }
        return nullptr;
}

static struct nd_error *enter_jail(int unpack_fd, int layers_fd, int userns_fd, struct pull_jail_filters *ret) {
        const struct pull_jail_mount mounts[] = {
                {.path = "/unpack", .fd = unpack_fd},
                {.path = "/layers", .fd = layers_fd, .read_only = true},
                {.path = "/empty", .fd = -EBADF},
        };

        (void) umask(0);
        nd_try(pull_jail_set_root(nullptr, 0, mounts, nd_count_of(mounts)));
        nd_try(nd_dir_make(AT_FDCWD, "/unpack/work", 0700));
        nd_try(nd_dir_make(AT_FDCWD, "/unpack/layers", 0700));
        return pull_jail_enter_supervisor(userns_fd, ret);
}

static struct nd_error *watch_workers(int *ret_fd) {
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        *ret_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret_fd < 0 ? nd_error_new(ND_INTERNAL, errno, "create a signalfd for workers") : nullptr;
}

/* Keeps only standard streams, the channel and the signalfd; closes directories of the host. */
static struct nd_error *keep_descriptors(int channel_fd, int signals) {
        int channel = fcntl(channel_fd, F_DUPFD_CLOEXEC, 64);

        if (channel < 0 || dup3(signals, SIGNALS_FD, O_CLOEXEC) < 0 || dup3(channel, CHANNEL_FD, O_CLOEXEC) < 0)
                return nd_error_new(ND_INTERNAL, errno, "duplicate the channel's descriptor");
        (void) close_range(SIGNALS_FD + 1, ~0u, 0);
        return nullptr;
}

void pull_supervisor_main(int channel_fd, int unpack_fd, int layers_fd, int userns_fd, const struct pull_events *events) {
        struct pull_message_reply ready = {.kind = MESSAGE_READY};
        nd_autoerror struct nd_error *error = nullptr;
        struct supervisor *s = nd_new(struct supervisor);
        int signals = -EBADF;

        s->events = events;
        s->left = total_bytes;
        error = watch_workers(&signals);
        if (!error)
                error = nd_own_userns_read(&s->node); /* the jail has no /proc */
        if (!error)
                error = enter_jail(unpack_fd, layers_fd, userns_fd, &s->filters);
        if (!error)
                error = keep_descriptors(channel_fd, signals);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of credentials clears it */
        if (error) {                             /* the fetcher sees the channel close */
                pull_event_error(events, error);
                _exit(EXIT_FAILURE);
        }
        send_reply(&ready, nullptr);
        error = serve(s);
        if (error)
                pull_event_error(events, error);
        _exit(s->finished ? EXIT_SUCCESS : EXIT_FAILURE);
}
