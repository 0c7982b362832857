/* SPDX-License-Identifier: Apache-2.0 */
/* unpacker.c - see unpacker.h
 *
 * Theory of operation
 *   One process, the keeper, is put into the jail at start and forks a worker for every job: a layer's bytes cannot reach another
 *   layer's memory, and layers are unpacked on as many processors as there are. Keeper and workers share one end of a SEQPACKET
 *   pair; a worker sends its own answer, and the keeper answers for a worker that a signal ended. The keeper is PID 1 of its namespace:
 *   when it goes, because the fetching side closed the pair or died, the kernel ends all workers.
 *   The bytes of a blob do not travel: a worker reads them from the file that the fetching side writes, behind a counter (an eventfd) of what
 *   is there. So a slow disk does not stop the network, nothing is copied, and what is on disk is what a later pull resumes from.
 *   Whatever a worker makes of unverified bytes stays in work/, inside of the jail, until the fetching side has compared the digests. */
#include "pull/unpacker.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "oci/layer.h"
#include "pull/inflate.h"
#include "pull/jail.h"
#include "pull/settle.h"
#include "pull/unpack.h"
#include "sys/file.h"
#include "sys/parcel.h"

enum {
        INPUT = 256 * 1024,
        WORKERS = 64,
        MARK_BYTES = 16 * 1024 * 1024,
};

enum kind {
        UNPACK,
        SETTLE,
        CANCEL,
};

struct job {
        enum kind kind;
        uint32_t id;
        uint64_t blob_size;
        uint64_t ceiling;
        enum nd_compression compression;
        bool lowest;
        size_t lower_count;
        uint8_t lower[ND_MANIFEST_LAYERS][SHA256_DIGEST_SIZE];
};

struct answer {
        uint32_t id;
        enum kind kind;
        int code, error_number;
        struct nd_digest diff_id;
        uint64_t stream, size, inodes;
        bool marks;
        char text[ND_UNPACKER_TEXT];
};

struct nd_unpacker {
        int fd;
        int pidfd;
        pid_t pid;
};

/* ---- in a worker */

/* The unpacked stream on its way. */
struct stream {
        struct nd_hash hash;
        struct nd_tar *tar;
};

static struct nd_error *hash_and_read(void *userdata, const char *bytes, size_t length) {
        struct stream *stream = userdata;

        nd_hash_add(&stream->hash, bytes, length);
        return nd_tar_feed(stream->tar, bytes, length);
}

/* Feeds the decompressor from the file, waiting for the counter where the writer is behind. */
static struct nd_error *feed_blob(const struct job *job, int blob, int available, struct nd_inflate *inflate) {
        static char input[INPUT];
        uint64_t there = 0, done = 0;

        while (done < job->blob_size) {
                uint64_t more;
                ssize_t n;

                if (there == done) {
                        if (read(available, &more, sizeof more) != sizeof more)
                                return nd_error_new(ND_INTERNAL, errno, "wait for more of a layer");
                        there += more;
                        continue;
                }
                n = pread(blob, input, there - done < INPUT ? (size_t) (there - done) : INPUT, (off_t) done);
                if (n <= 0)
                        return nd_error_new(ND_INTERNAL, n < 0 ? errno : EIO, "read a layer's download");
                nd_try(nd_inflate_feed(inflate, input, (size_t) n));
                done += (uint64_t) n;
        }
        return nd_inflate_finish(inflate);
}

static struct nd_error *open_work(uint32_t id, bool make, int *ret_work, int *ret_tree) {
        char path[64];

        (void) snprintf(path, sizeof path, "/staging/work/%u", id);
        if (make)
                nd_try(nd_dir_make(AT_FDCWD, path, 0700));
        nd_try(nd_dir_open(AT_FDCWD, path, ret_work));
        if (make)
                nd_try(nd_dir_make(*ret_work, ND_LAYER_TREE, 0755));
        return nd_dir_open(*ret_work, ND_LAYER_TREE, ret_tree);
}

static struct nd_error *write_marks(int work, const struct nd_text *marks) {
        nd_autoclose int fd = nd_sys->openat(work, "marks", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

        for (size_t done = 0; fd >= 0 && done < marks->length;) {
                ssize_t n = nd_sys->write(fd, marks->bytes + done, marks->length - done);

                if (n <= 0)
                        return nd_error_new(nd_code_of_errno(errno), errno, "write a layer's marks");
                done += (size_t) n;
        }
        return fd < 0 ? nd_error_new(nd_code_of_errno(errno), errno, "write a layer's marks") : nullptr;
}

static struct nd_error *work_unpack(const struct job *job, int blob, int available, struct answer *answer) {
        nd_autoclose int work = -EBADF, tree = -EBADF;
        nd_cleanup(nd_unpack_done) struct nd_unpack *unpack = nullptr;
        nd_cleanup(nd_inflate_done) struct nd_inflate *inflate = nullptr;
        nd_cleanup(nd_tar_done) struct nd_tar *tar = nullptr;
        nd_autotext marks = ND_TEXT(MARK_BYTES);
        struct nd_unpack_result result;
        struct stream stream;
        struct nd_tar_sink sink;

        nd_try(open_work(job->id, true, &work, &tree));
        unpack = nd_unpack_new(tree, job->lowest);
        sink = nd_unpack_sink(unpack);
        stream.tar = tar = nd_tar_new(&sink);
        nd_hash_start(ND_HASH_SHA256, &stream.hash);
        inflate = nd_inflate_new(job->compression, job->ceiling, hash_and_read, &stream);

        nd_try(feed_blob(job, blob, available, inflate));
        nd_try(nd_tar_finish(tar));
        nd_try(nd_unpack_finish(unpack, &marks, &result));
        if (marks.length > 0)
                nd_try(write_marks(work, &marks));
        answer->diff_id = nd_hash_finish(&stream.hash);
        answer->stream = nd_inflate_total(inflate);
        answer->size = result.size;
        answer->inodes = result.inodes;
        answer->marks = marks.length > 0;
        return nullptr;
}

static int open_lower(void *userdata, size_t index) {
        const struct job *job = userdata;
        struct nd_digest chain = {.kind = ND_HASH_SHA256};
        char hex[ND_DIGEST_HEX], path[256];
        int fd;

        memcpy(chain.bytes, job->lower[index], sizeof job->lower[index]);
        (void) nd_digest_hex(&chain, hex);
        (void) snprintf(path, sizeof path, "/staging/layers/%s/" ND_LAYER_TREE, hex);
        fd = nd_sys->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (fd < 0 && errno == ENOENT) {
                (void) snprintf(path, sizeof path, "/layers/%s/" ND_LAYER_TREE, hex);
                fd = nd_sys->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        }
        return fd < 0 ? -errno : fd;
}

static struct nd_error *work_settle(struct job *job) {
        nd_autoclose int work = -EBADF, tree = -EBADF;
        nd_autofree char *marks = nullptr;
        size_t length;

        nd_try(open_work(job->id, false, &work, &tree));
        nd_try(nd_file_read(work, "marks", MARK_BYTES, &marks, &length));
        nd_try(nd_settle(tree, marks, length,
                         &(struct nd_settle_lower) {.count = job->lower_count, .open = open_lower, .userdata = job}));
        return nd_file_remove(work, "marks");
}

[[noreturn]] static void worker_main(int fd, struct job *job, int blob, int available) {
        struct answer answer = {.id = job->id, .kind = job->kind};
        nd_autoerror struct nd_error *error = nullptr;

        error = job->kind == UNPACK ? work_unpack(job, blob, available, &answer) : work_settle(job);
        answer.code = (int) nd_error_code(error);
        answer.error_number = nd_error_errno(error);
        (void) snprintf(answer.text, sizeof answer.text, "%s", nd_error_text(error));
        _exit(send(fd, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- in the keeper */

struct worker {
        pid_t pid; /* 0 = free */
        uint32_t id;
        enum kind kind;
};

struct keeper {
        int fd;
        struct worker workers[WORKERS];
};

static void answer_for(struct keeper *k, uint32_t id, enum kind kind, const char *text) {
        struct answer answer = {.id = id, .kind = kind, .code = ND_INTERNAL};

        (void) snprintf(answer.text, sizeof answer.text, "%s", text);
        (void) send(k->fd, &answer, sizeof answer, MSG_NOSIGNAL);
}

static void start_worker(struct keeper *k, struct job *job, int blob, int available) {
        struct worker *slot = nullptr;
        pid_t pid;

        for (size_t i = 0; i < WORKERS && !slot; i++)
                if (k->workers[i].pid == 0)
                        slot = &k->workers[i];
        if (!slot)
                return answer_for(k, job->id, job->kind, "too many layers at once");
        pid = fork();
        if (pid == 0)
                worker_main(k->fd, job, blob, available);
        if (pid < 0)
                return answer_for(k, job->id, job->kind, "no process for unpacking a layer");
        *slot = (struct worker) {.pid = pid, .id = job->id, .kind = job->kind};
}

static void reap(struct keeper *k) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < WORKERS; i++) {
                        struct worker *w = &k->workers[i];
                        char text[96];

                        if (w->pid != pid)
                                continue;
                        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                                (void) snprintf(text, sizeof text, "the process that unpacked a layer ended by signal %d",
                                                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
                                answer_for(k, w->id, w->kind, text);
                        }
                        *w = (struct worker) {};
                }
}

static void cancel(const struct keeper *k, uint32_t id) {
        for (size_t i = 0; i < WORKERS; i++)
                if (k->workers[i].pid > 0 && k->workers[i].id == id)
                        (void) kill(k->workers[i].pid, SIGKILL);
}

/* One job with its descriptors; false when the other side is gone. */
static bool take_job(struct keeper *k) {
        static struct job job;
        int fds[2];
        ssize_t n = nd_parcel_receive(k->fd, &job, sizeof job, fds, nd_count_of(fds), 0);

        if (n == -EAGAIN)
                return true;
        if (n < (ssize_t) offsetof(struct job, lower))
                return false;
        if (job.kind == CANCEL)
                cancel(k, job.id);
        else
                start_worker(k, &job, fds[0], fds[1]);
        nd_close_fd(&fds[0]);
        nd_close_fd(&fds[1]);
        return true;
}

static int keep(int fd, int signals) {
        struct keeper k = {.fd = fd};

        for (;;) {
                struct pollfd wait[] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
                struct signalfd_siginfo info;

                if (poll(wait, nd_count_of(wait), -1) < 0 && errno != EINTR)
                        return EXIT_FAILURE;
                if (wait[1].revents && read(signals, &info, sizeof info) == sizeof info)
                        reap(&k);
                if (wait[0].revents && !take_job(&k))
                        return EXIT_SUCCESS;
        }
}

static struct nd_error *enter_jail(int staging_fd, int layers_fd, int userns_fd, int *ret_signals) {
        const struct nd_jail_mount mounts[] = {
                {.path = "/staging", .fd = staging_fd},
                {.path = "/layers", .fd = layers_fd, .read_only = true},
        };
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &mask, nullptr);
        *ret_signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (*ret_signals < 0)
                return nd_error_new(ND_INTERNAL, errno, "wait for workers");
        (void) umask(0);
        nd_try(nd_jail_root(nullptr, 0, mounts, nd_count_of(mounts)));
        return nd_jail_close_unpack(userns_fd);
}

/* The keeper's first answer tells whether its jail stands. */
[[noreturn]] static void keeper_main(int fd, int staging_fd, int layers_fd, int userns_fd) {
        nd_autoerror struct nd_error *error = nullptr;
        struct answer ready = {.id = UINT32_MAX};
        int signals = -EBADF;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        error = enter_jail(staging_fd, layers_fd, userns_fd, &signals);
        /* Everything but the pair and the signals belongs to somebody else, directories of the machine among it. */
        if (dup3(fd, 3, O_CLOEXEC) < 0 || dup3(signals, 4, O_CLOEXEC) < 0)
                _exit(EXIT_FAILURE);
        (void) close(STDIN_FILENO);
        (void) close(STDOUT_FILENO);
        (void) close_range(5, ~0u, 0);
        ready.code = (int) nd_error_code(error);
        (void) snprintf(ready.text, sizeof ready.text, "%s", nd_error_text(error));
        (void) send(3, &ready, sizeof ready, MSG_NOSIGNAL);
        _exit(error ? EXIT_FAILURE : keep(3, 4));
}

/* ---- on the fetching side */

void nd_unpacker_free(struct nd_unpacker *u) {
        siginfo_t end;

        if (!u)
                return;
        nd_close_fd(&u->fd);
        if (u->pidfd >= 0) {
                (void) nd_sys->pidfd_send_signal(u->pidfd, SIGKILL, 0);
                (void) waitid(P_PIDFD, (id_t) u->pidfd, &end, WEXITED);
        }
        nd_close_fd(&u->pidfd);
        free(u);
}

static void unpacker_done(struct nd_unpacker **u) {
        nd_unpacker_free(*u);
}

struct nd_error *nd_unpacker_start(int staging_fd, int layers_fd, struct nd_unpacker **ret) {
        nd_cleanup(unpacker_done) struct nd_unpacker *u = nd_new(struct nd_unpacker);
        nd_autoclose int userns_fd = -EBADF, theirs = -EBADF;
        struct clone_args arguments = {
                .flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS,
                .exit_signal = SIGCHLD,
                .pidfd = (uintptr_t) &u->pidfd,
        };
        struct nd_unpack_answer ready;
        int pair[2];
        bool there;

        u->fd = u->pidfd = -EBADF;
        nd_try(nd_jail_userns(&userns_fd));
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return nd_error_new(nd_code_of_errno(errno), errno, "make a socket pair");
        u->fd = pair[0];
        theirs = pair[1];
        u->pid = nd_sys->clone3(&arguments, sizeof arguments);
        if (u->pid < 0)
                return nd_error_new(
                        nd_code_of_errno(errno), errno,
                        "start the unpacker (nodens-pull must be root, or root of a rootless node's user namespace)");
        if (u->pid == 0)
                keeper_main(theirs, staging_fd, layers_fd, userns_fd);
        nd_close_fd(&theirs);
        if (poll(&(struct pollfd) {.fd = u->fd, .events = POLLIN}, 1, 10000) <= 0)
                return nd_error_new(ND_DEADLINE, ETIMEDOUT, "the unpacker does not start");
        nd_try(nd_unpacker_receive(u, &ready, &there));
        if (ready.error)
                return nd_error_wrap(ready.error, "the unpacker's jail");
        *ret = nd_take_ptr(u);
        return nullptr;
}

int nd_unpacker_fd(const struct nd_unpacker *u) {
        return u->fd;
}

static struct nd_error *send_job(struct nd_unpacker *u, const struct job *job, int blob, int available) {
        int fds[2] = {blob, available};
        size_t length = offsetof(struct job, lower) + job->lower_count * sizeof job->lower[0];
        ssize_t n = nd_parcel_send(u->fd, job, length, fds, blob >= 0 ? nd_count_of(fds) : 0, 0);

        if (n < 0)
                return nd_error_new(ND_INTERNAL, (int) -n, "the unpacker is gone");
        return nullptr;
}

struct nd_error *nd_unpacker_unpack(struct nd_unpacker *u, const struct nd_unpack_job *job) {
        return send_job(u,
                        &(struct job) {.kind = UNPACK,
                                       .id = job->id,
                                       .blob_size = job->blob_size,
                                       .ceiling = job->ceiling,
                                       .compression = job->compression,
                                       .lowest = job->lowest},
                        job->blob_fd, job->available_fd);
}

struct nd_error *nd_unpacker_settle(struct nd_unpacker *u, uint32_t id, const struct nd_digest *lower, size_t count) {
        struct job job = {.kind = SETTLE, .id = id, .lower_count = count};

        if (count > ND_MANIFEST_LAYERS)
                return nd_error_new(ND_INVALID, 0, "more than %d layers", ND_MANIFEST_LAYERS);
        for (size_t i = 0; i < count; i++)
                memcpy(job.lower[i], lower[i].bytes, sizeof job.lower[i]);
        return send_job(u, &job, -EBADF, -EBADF);
}

void nd_unpacker_cancel(struct nd_unpacker *u, uint32_t id) {
        nd_error_free(send_job(u, &(struct job) {.kind = CANCEL, .id = id}, -EBADF, -EBADF));
}

struct nd_error *nd_unpacker_receive(struct nd_unpacker *u, struct nd_unpack_answer *ret, bool *ret_there) {
        struct answer answer;
        ssize_t n = recv(u->fd, &answer, sizeof answer, MSG_DONTWAIT);

        *ret_there = false;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return nullptr;
        if (n != sizeof answer)
                return nd_error_new(ND_INTERNAL, n < 0 ? errno : 0, "the unpacker ended unexpectedly");
        answer.text[sizeof answer.text - 1] = '\0';
        *ret = (struct nd_unpack_answer) {
                .id = answer.id,
                .settled = answer.kind == SETTLE,
                .error = answer.code != ND_OK
                                 ? nd_error_received((enum nd_code)(answer.code & 15), answer.error_number, answer.text)
                                 : nullptr,
                .diff_id = answer.diff_id,
                .stream = answer.stream,
                .size = answer.size,
                .inodes = answer.inodes,
                .marks = answer.marks,
        };
        *ret_there = true;
        return nullptr;
}
