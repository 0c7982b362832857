/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h
 *
 * Theory of operation
 *   A worker first moves its descriptors to fixed numbers and closes all others, so that no directory of the keeper is left; then it
 *   locks itself in (jail.h) and works. Data comes on descriptor 0 and goes to 1, the report to 3. A pipe whose other end is gone is
 *   not this worker's error: the report says so, and the keeper looks for the one that ended first.
 * Invariant  no descriptor that a tree worker holds outlives it: it has no socket to send one over, and cannot fork. So once it was
 *            waited for, nothing can write to its tree. */
#include "pull/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "pull/inflate.h"
#include "pull/settle.h"
#include "pull/unpack.h"
#include "sys/file.h"

enum {
        INPUT_FD = 0,
        OUTPUT_FD = 1,
        REPORT_FD = 3,
        ROOT_FD = 4,
        AVAILABLE_FD = 5, /* or the first tree below */
        HIGH = 700,       /* above all numbers that are handed out */
        INPUT = 256 * 1024,
        PIECE = 128 * 1024,
};

static int report_fd = REPORT_FD; /* the plan's, until it is at its number */

/* Puts descriptors at their numbers and closes the rest; a negative one leaves its number closed. */
static struct nd_error *keep_only(const struct nd_worker_plan *plan, int root, const int *more, size_t count) {
        const int wanted[] = {plan->input, plan->output, STDERR_FILENO, plan->report, root};
        int moved[nd_count_of(wanted)];

        for (size_t i = 0; i < nd_count_of(wanted); i++) {
                moved[i] = wanted[i] < 0 ? -EBADF : fcntl(wanted[i], F_DUPFD_CLOEXEC, HIGH);
                if (wanted[i] >= 0 && moved[i] < 0 && wanted[i] != STDERR_FILENO)
                        return nd_error_new(ND_INTERNAL, errno, "keep a worker's descriptors");
        }
        for (size_t i = 0; i < count; i++)
                if (more[i] != AVAILABLE_FD + (int) i && dup3(more[i], AVAILABLE_FD + (int) i, O_CLOEXEC) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "keep a worker's descriptors");
        for (size_t i = 0; i < nd_count_of(wanted); i++) {
                (void) close((int) i);
                if (moved[i] >= 0 && dup3(moved[i], (int) i, O_CLOEXEC) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "keep a worker's descriptors");
        }
        (void) close_range(AVAILABLE_FD + (unsigned) count, ~0u, 0);
        report_fd = REPORT_FD;
        return nullptr;
}

[[noreturn]] static void finish(struct nd_worker_report *report, struct nd_error *error) {
        report->code = (int32_t) nd_error_code(error);
        report->error_number = nd_error_errno(error);
        (void) snprintf(report->text, sizeof report->text, "%s", nd_error_text(error));
        _exit(write(report_fd, report, sizeof *report) == sizeof *report && !error ? EXIT_SUCCESS : EXIT_FAILURE);
}

static struct nd_error *put(struct nd_worker_report *report, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = write(OUTPUT_FD, bytes, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        report->quiet = errno == EPIPE;
                        return nd_error_new(ND_INTERNAL, errno, "hand on a layer's bytes");
                }
                bytes += n;
                length -= (size_t) n;
        }
        return nullptr;
}

/* ---- inflate */

static struct nd_error *put_inflated(void *userdata, const char *bytes, size_t length) {
        return put(userdata, bytes, length);
}

/* Feeds the decompressor from the file, waiting for the counter where the writer is behind. */
static struct nd_error *feed_blob(uint64_t blob_size, struct nd_inflate *inflate) {
        static char input[INPUT];
        uint64_t there = 0, done = 0;

        while (done < blob_size) {
                uint64_t more;
                ssize_t n;

                if (there == done) {
                        if (read(AVAILABLE_FD, &more, sizeof more) != sizeof more)
                                return nd_error_new(ND_INTERNAL, errno, "wait for more of a layer");
                        if (more > blob_size - there)
                                return nd_error_new(ND_INTERNAL, EFBIG, "more of a layer than there can be");
                        there += more;
                        continue;
                }
                n = pread(INPUT_FD, input, there - done < INPUT ? (size_t) (there - done) : INPUT, (off_t) done);
                if (n <= 0)
                        return nd_error_new(ND_INTERNAL, n < 0 ? errno : EIO, "read a layer's download");
                nd_try(nd_inflate_feed(inflate, input, (size_t) n));
                done += (uint64_t) n;
        }
        return nd_inflate_finish(inflate);
}

static struct nd_error *lock_stream(const struct nd_worker_plan *plan, size_t more) {
        int empty = open("/empty", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (empty < 0)
                return nd_error_new(ND_INTERNAL, errno, "open a worker's root directory");
        nd_try(keep_only(plan, empty, &plan->available, more));
        nd_try(nd_jail_close_worker(plan->filters, ND_JAIL_STREAM, ROOT_FD));
        (void) close(ROOT_FD);
        return nullptr;
}

void nd_worker_inflate(const struct nd_worker_plan *plan) {
        nd_cleanup(nd_inflate_done) struct nd_inflate *inflate = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_worker_report report = {};

        report_fd = plan->report;
        error = lock_stream(plan, 1);
        if (error)
                finish(&report, error);
        inflate = nd_inflate_new(plan->compression, plan->ceiling, put_inflated, &report);
        error = feed_blob(plan->blob_size, inflate);
        finish(&report, error);
}

/* ---- hash */

/* *ret is 0 at the end. */
static struct nd_error *read_piece(char piece[static PIECE], size_t *ret) {
        ssize_t n;

        do
                n = read(INPUT_FD, piece, PIECE);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return nd_error_new(ND_INTERNAL, errno, "read a layer's bytes");
        *ret = (size_t) n;
        return nullptr;
}

static struct nd_error *hash_all(uint64_t ceiling, struct nd_worker_report *report) {
        static char piece[PIECE];
        struct nd_digest digest;
        struct nd_hash hash;
        size_t n = 0;

        nd_hash_start(ND_HASH_SHA256, &hash);
        for (;;) {
                nd_try(read_piece(piece, &n));
                if (n == 0)
                        break;
                if (n > ceiling - report->stream)
                        return nd_error_new(ND_EXHAUSTED, EFBIG, "the layer unpacks to more than is allowed");
                nd_hash_add(&hash, piece, n);
                report->stream += n;
                nd_try(put(report, piece, n));
        }
        digest = nd_hash_finish(&hash);
        memcpy(report->diff_id, digest.bytes, sizeof report->diff_id);
        return nullptr;
}

void nd_worker_hash(const struct nd_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_worker_report report = {};

        report_fd = plan->report;
        error = lock_stream(plan, 0);
        if (error)
                finish(&report, error);
        error = hash_all(plan->ceiling, &report);
        finish(&report, error);
}

/* ---- tar */

static struct nd_error *write_marks(const struct nd_text *marks) {
        for (size_t done = 0; done < marks->length;) {
                ssize_t n = nd_sys->write(OUTPUT_FD, marks->bytes + done, marks->length - done);

                if (n <= 0)
                        return nd_error_new(nd_code_of_errno(errno), errno, "write a layer's marks");
                done += (size_t) n;
        }
        return nullptr;
}

static struct nd_error *feed_tar(struct nd_tar *tar) {
        static char piece[PIECE];
        size_t n = 0;

        for (;;) {
                nd_try(read_piece(piece, &n));
                if (n == 0)
                        return nullptr;
                nd_try(nd_tar_feed(tar, piece, n));
        }
}

static struct nd_error *unpack(bool lowest, struct nd_worker_report *report) {
        nd_cleanup(nd_unpack_done) struct nd_unpack *unpack = nd_unpack_new(ROOT_FD, lowest);
        struct nd_tar_sink sink = nd_unpack_sink(unpack);
        nd_cleanup(nd_tar_done) struct nd_tar *tar = nd_tar_new(&sink);
        nd_autotext marks = ND_TEXT(ND_WORKER_MARKS);
        struct nd_unpack_result result;

        nd_try(feed_tar(tar));
        report->at_end = 1;
        nd_try(nd_tar_finish(tar));
        nd_try(nd_unpack_finish(unpack, &marks, &result));
        nd_try(write_marks(&marks));
        report->size = result.size;
        report->inodes = result.inodes;
        report->marks = marks.length > 0;
        return nullptr;
}

static struct nd_error *lock_tree(const struct nd_worker_plan *plan, const int *lower, size_t count) {
        int tree;

        nd_try(nd_jail_view(plan->tree, false, &tree));
        nd_try(keep_only(plan, tree, lower, count));
        return nd_jail_close_worker(plan->filters, ND_JAIL_TREE, ROOT_FD);
}

void nd_worker_tar(const struct nd_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_worker_report report = {};

        report_fd = plan->report;
        error = lock_tree(plan, nullptr, 0);
        if (error)
                finish(&report, error);
        error = unpack(plan->lowest, &report);
        finish(&report, error);
}

/* ---- settle */

static int open_lower([[maybe_unused]] void *userdata, size_t index) {
        int fd = fcntl(AVAILABLE_FD + (int) index, F_DUPFD_CLOEXEC, 0);

        return fd < 0 ? -errno : fd;
}

static struct nd_error *settle(size_t lower_count) {
        nd_autofree char *marks = nd_malloc(ND_WORKER_MARKS);
        size_t length = 0;
        ssize_t n;

        while ((n = read(INPUT_FD, marks + length, ND_WORKER_MARKS - length)) > 0)
                length += (size_t) n;
        if (n < 0)
                return nd_error_new(ND_INTERNAL, errno, "read a layer's marks");
        return nd_settle(ROOT_FD, marks, length, &(struct nd_settle_lower) {.count = lower_count, .open = open_lower});
}

static struct nd_error *lock_settle(const struct nd_worker_plan *plan) {
        nd_autofree int *lower = nd_calloc(plan->lower_count + 1, sizeof *lower);

        /* The numbers that they end up at lie below: nothing is overwritten before it was moved. */
        for (size_t i = 0; i < plan->lower_count; i++)
                nd_try(nd_jail_view(plan->lower[i], true, &lower[i]));
        return lock_tree(plan, lower, plan->lower_count);
}

void nd_worker_settle(const struct nd_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct nd_worker_report report = {};

        report_fd = plan->report;
        error = lock_settle(plan);
        if (error)
                finish(&report, error);
        error = settle(plan->lower_count);
        finish(&report, error);
}
