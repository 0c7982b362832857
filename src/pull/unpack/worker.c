/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h
 *
 * Theory of operation
 *   A worker first moves its descriptors to fixed numbers and closes all others, so that it has no
 *   directory of the supervisor; then it confines itself (jail.h) and works. Data comes on
 *   descriptor 0 and goes to 1, the report to 3. A pipe whose other end is closed is not this
 *   worker's error: the report says so, and the supervisor looks for the worker that exited first.
 * Invariant  no descriptor of a tree worker outlives it: it has no socket to pass one over, and
 * cannot fork. So after it was waited for, nothing can write to its tree. */
#include "pull/unpack/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "pull/archive/decompress.h"
#include "pull/unpack/finalize.h"
#include "pull/unpack/unpack.h"
#include "sys/file.h"

enum {
        INPUT_FD = 0,
        OUTPUT_FD = 1,
        REPORT_FD = 3,
        ROOT_FD = 4,
        AVAILABLE_FD = 5, /* or the first lower tree */
        HIGH = 700,       /* above all fixed numbers */
        INPUT = 256 * 1024,
        PIECE = 128 * 1024,
};

static int report_fd = REPORT_FD; /* the plan's, until it is moved to its number */

/* Moves descriptors to their numbers and closes the rest; a negative one leaves its number
 * closed. */
static struct nd_error *keep_descriptors_only(const struct pull_worker_plan *plan, int root, const int *more, size_t count) {
        const int wanted[] = {plan->input, plan->output, STDERR_FILENO, plan->report, root};
        int moved[nd_count_of(wanted)];

        for (size_t i = 0; i < nd_count_of(wanted); i++) {
                moved[i] = wanted[i] < 0 ? -EBADF : fcntl(wanted[i], F_DUPFD_CLOEXEC, HIGH);
                if (wanted[i] >= 0 && moved[i] < 0 && wanted[i] != STDERR_FILENO)
                        return nd_error_new(ND_INTERNAL, errno, "move a worker's descriptors");
        }
        for (size_t i = 0; i < count; i++)
                if (more[i] != AVAILABLE_FD + (int) i && dup3(more[i], AVAILABLE_FD + (int) i, O_CLOEXEC) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "move a worker's descriptors");
        for (size_t i = 0; i < nd_count_of(wanted); i++) {
                (void) close((int) i);
                if (moved[i] >= 0 && dup3(moved[i], (int) i, O_CLOEXEC) < 0)
                        return nd_error_new(ND_INTERNAL, errno, "move a worker's descriptors");
        }
        (void) close_range(AVAILABLE_FD + (unsigned) count, ~0u, 0);
        report_fd = REPORT_FD;
        return nullptr;
}

[[noreturn]] static void finish(struct pull_worker_report *report, struct nd_error *error) {
        report->code = (int32_t) nd_error_code(error);
        report->error_number = nd_error_errno(error);
        (void) snprintf(report->text, sizeof report->text, "%s", nd_error_text(error));
        _exit(write(report_fd, report, sizeof *report) == sizeof *report && !error ? EXIT_SUCCESS : EXIT_FAILURE);
}

static struct nd_error *write_output(struct pull_worker_report *report, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = write(OUTPUT_FD, bytes, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        report->quiet = errno == EPIPE;
                        return nd_error_new(ND_INTERNAL, errno, "write a layer's data to the next worker");
                }
                bytes += n;
                length -= (size_t) n;
        }
        return nullptr;
}

/* ---- decompress ---- */

static struct nd_error *write_decompressed(void *userdata, const char *bytes, size_t length) {
        return write_output(userdata, bytes, length);
}

static struct nd_error *feed_piece(struct pull_decompressor *decompressor, struct pull_worker_report *report,
                                   const char *bytes, size_t length) {
        return decompressor ? pull_decompressor_feed(decompressor, bytes, length) : write_output(report, bytes, length);
}

/* Feeds the decompressor from the file, or copies the file if there is none; waits for the counter
 * when the writer is behind. */
static struct nd_error *feed_blob(uint64_t blob_size, struct pull_decompressor *decompressor,
                                  struct pull_worker_report *report) {
        static char input[INPUT];
        uint64_t there = 0, done = 0;

        while (done < blob_size) {
                uint64_t more;
                ssize_t n;

                if (there == done) {
                        if (read(AVAILABLE_FD, &more, sizeof more) != sizeof more)
                                return nd_error_new(ND_INTERNAL, errno, "wait for more data of a layer");
                        if (more > blob_size - there)
                                return nd_error_new(ND_INTERNAL, EFBIG, "more data than the size of the layer");
                        there += more;
                        continue;
                }
                n = pread(INPUT_FD, input, there - done < INPUT ? (size_t) (there - done) : INPUT, (off_t) done);
                if (n <= 0)
                        return nd_error_new(ND_INTERNAL, n < 0 ? errno : EIO, "read the download of a layer");
                nd_try(feed_piece(decompressor, report, input, (size_t) n));
                done += (uint64_t) n;
        }
        return decompressor ? pull_decompressor_finish(decompressor) : nullptr;
}

static struct nd_error *confine_stream(const struct pull_worker_plan *plan, size_t more) {
        int empty = open("/empty", O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (empty < 0)
                return nd_error_new(ND_INTERNAL, errno, "open a worker's root directory");
        nd_try(keep_descriptors_only(plan, empty, &plan->available, more));
        nd_try(pull_jail_enter_worker(plan->filters, JAIL_STREAM, ROOT_FD));
        (void) close(ROOT_FD);
        return nullptr;
}

void pull_worker_decompress(const struct pull_worker_plan *plan) {
        nd_cleanup(pull_decompressor_done) struct pull_decompressor *decompressor = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        struct pull_worker_report report = {};

        report_fd = plan->report;
        error = confine_stream(plan, 1);
        if (error)
                finish(&report, error);
        if (!plan->file)
                decompressor = pull_decompressor_new(plan->compression, plan->ceiling, write_decompressed, &report);
        error = feed_blob(plan->blob_size, decompressor, &report);
        finish(&report, error);
}

/* ---- hash ---- */

/* *ret is 0 at end of file. */
static struct nd_error *read_piece(char piece[static PIECE], size_t *ret) {
        ssize_t n;

        do
                n = read(INPUT_FD, piece, PIECE);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return nd_error_new(ND_INTERNAL, errno, "read the data of a layer");
        *ret = (size_t) n;
        return nullptr;
}

static struct nd_error *hash_all(uint64_t ceiling, struct pull_worker_report *report) {
        static char piece[PIECE];
        struct nd_digest digest;
        struct nd_digest_hash hash;
        size_t n = 0;

        nd_digest_hash_start(ND_HASH_SHA256, &hash);
        for (;;) {
                nd_try(read_piece(piece, &n));
                if (n == 0)
                        break;
                if (n > ceiling - report->stream)
                        return nd_error_new(ND_EXHAUSTED, EFBIG, "the layer unpacks to more than the limit");
                nd_digest_hash_add(&hash, piece, n);
                report->stream += n;
                nd_try(write_output(report, piece, n));
        }
        digest = nd_digest_hash_finish(&hash);
        memcpy(report->diff_id, digest.bytes, sizeof report->diff_id);
        return nullptr;
}

void pull_worker_hash(const struct pull_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct pull_worker_report report = {};

        report_fd = plan->report;
        error = confine_stream(plan, 0);
        if (error)
                finish(&report, error);
        error = hash_all(plan->ceiling, &report);
        finish(&report, error);
}

/* ---- tar ---- */

static struct nd_error *write_marks(const struct nd_text *marks) {
        for (size_t done = 0; done < marks->length;) {
                ssize_t n = nd_sys->write(OUTPUT_FD, marks->bytes + done, marks->length - done);

                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write a layer's marks");
                done += (size_t) n;
        }
        return nullptr;
}

static struct nd_error *feed_tar(struct pull_tar *tar) {
        static char piece[PIECE];
        size_t n = 0;

        for (;;) {
                nd_try(read_piece(piece, &n));
                if (n == 0)
                        return nullptr;
                nd_try(pull_tar_feed(tar, piece, n));
        }
}

static struct nd_error *unpack_archive(const struct pull_tar_sink *sink, struct pull_worker_report *report) {
        nd_cleanup(pull_tar_done) struct pull_tar *tar = pull_tar_new(sink);

        nd_try(feed_tar(tar));
        report->at_end = 1;
        return pull_tar_finish(tar);
}

/* Makes an artifact's file, as if an archive had this one entry. */
static struct nd_error *unpack_file(const struct pull_worker_plan *plan, const struct pull_tar_sink *sink,
                                    struct pull_worker_report *report) {
        struct pull_tar_entry entry = {
                .kind = TAR_FILE, .path = plan->file, .link = "", .mode = WORKER_FILE_MODE, .size = plan->blob_size};
        static char piece[PIECE];
        uint64_t done = 0;
        size_t n = 0;

        nd_try(sink->entry(sink->userdata, &entry));
        for (;;) {
                nd_try(read_piece(piece, &n));
                if (n == 0)
                        break;
                nd_try(sink->data(sink->userdata, piece, n));
                done += n;
        }
        report->at_end = 1;
        if (done != plan->blob_size)
                return nd_error_new(ND_DATA_LOSS, 0, "the file has %llu bytes, its descriptor %llu", (unsigned long long) done,
                                    (unsigned long long) plan->blob_size);
        return sink->end(sink->userdata);
}

static struct nd_error *unpack(const struct pull_worker_plan *plan, struct pull_worker_report *report) {
        nd_cleanup(pull_unpack_done) struct pull_unpack *unpack = pull_unpack_new(ROOT_FD, plan->lowest);
        struct pull_tar_sink sink = pull_unpack_sink(unpack);
        nd_autotext struct nd_text marks = ND_TEXT(WORKER_MARKS);
        struct pull_unpack_result result;

        pull_unpack_squash_owners(unpack, plan->squash);
        nd_try(plan->file ? unpack_file(plan, &sink, report) : unpack_archive(&sink, report));
        nd_try(pull_unpack_finish(unpack, &marks, &result));
        nd_try(write_marks(&marks));
        report->size = result.size;
        report->inodes = result.inodes;
        report->owner = result.owner;
        report->marks = marks.length > 0;
        return nullptr;
}

static struct nd_error *confine_tree(const struct pull_worker_plan *plan, const int *lower, size_t count) {
        int tree;

        nd_try(pull_jail_clone_mount(plan->tree, false, &tree));
        nd_try(keep_descriptors_only(plan, tree, lower, count));
        return pull_jail_enter_worker(plan->filters, JAIL_TREE, ROOT_FD);
}

void pull_worker_tar(const struct pull_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct pull_worker_report report = {};

        report_fd = plan->report;
        error = confine_tree(plan, nullptr, 0);
        if (error)
                finish(&report, error);
        error = unpack(plan, &report);
        finish(&report, error);
}

/* ---- finalize ---- */

static int open_lower([[maybe_unused]] void *userdata, size_t index) {
        int fd = fcntl(AVAILABLE_FD + (int) index, F_DUPFD_CLOEXEC, 0);

        return fd < 0 ? -errno : fd;
}

static struct nd_error *finalize(size_t lower_count) {
        nd_autofree char *marks = nd_malloc(WORKER_MARKS);
        size_t length = 0;
        ssize_t n;

        while ((n = read(INPUT_FD, marks + length, WORKER_MARKS - length)) > 0)
                length += (size_t) n;
        if (n < 0)
                return nd_error_new(ND_INTERNAL, errno, "read a layer's marks");
        return pull_finalize(ROOT_FD, marks, length, &(struct pull_finalize_lower) {.count = lower_count, .open = open_lower});
}

static struct nd_error *confine_finalize(const struct pull_worker_plan *plan) {
        nd_autofree int *lower = nd_calloc(plan->lower_count + 1, sizeof *lower);

        /* Their final numbers are lower, so no descriptor is overwritten before it was moved. */
        for (size_t i = 0; i < plan->lower_count; i++)
                nd_try(pull_jail_clone_mount(plan->lower[i], true, &lower[i]));
        return confine_tree(plan, lower, plan->lower_count);
}

void pull_worker_finalize(const struct pull_worker_plan *plan) {
        nd_autoerror struct nd_error *error = nullptr;
        struct pull_worker_report report = {};

        report_fd = plan->report;
        error = confine_finalize(plan);
        if (error)
                finish(&report, error);
        error = finalize(plan->lower_count);
        finish(&report, error);
}
