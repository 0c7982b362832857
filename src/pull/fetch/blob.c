/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/blob.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "sys/calls.h"

enum {
        PIECE = 1024 * 1024,
        PIECES = 8, /* per turn of rehashing: some milliseconds */
        /* listeners are notified per so many bytes, not per TLS record */
        ANNOUNCEMENT = 256 * 1024,
};

void pull_blob_init(const struct nd_digest *digest, uint64_t size, struct pull_blob *ret) {
        *ret = (struct pull_blob) {.digest = *digest, .size = size, .fd = -EBADF, .reader = -EBADF};
        nd_digest_hash_start(digest->kind, &ret->hash);
}

void pull_blob_done(struct pull_blob *b) {
        nd_close_fd(&b->fd);
        nd_close_fd(&b->reader);
        nd_vector_done(&b->listeners);
}

/* Opens and locks the file in partial/; an error when another pull has locked it. */
static int open_shared(const struct pull_blob *b, int partial_fd, const char *name, struct stat *ret) {
        nd_autoclose int fd = nd_sys->openat(partial_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
        struct stat named;

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode))
                return -EBUSY;
        /* Its last owner may have removed it between our open and lock. */
        if (fstatat(partial_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != ret->st_ino)
                return -EBUSY;
        if ((uint64_t) ret->st_size > b->size) {
                if (nd_sys->ftruncate(fd, 0) < 0)
                        return -EBUSY;
                ret->st_size = 0;
        }
        return nd_take_fd(fd);
}

struct nd_error *pull_blob_open(struct pull_blob *b, int partial_fd, int blobs_fd) {
        char name[ND_DIGEST_HEX + 8];
        int directory = partial_fd;
        struct stat st = {};

        (void) nd_digest_hex(&b->digest, name);
        b->fd = open_shared(b, partial_fd, name, &st);
        b->shared = b->fd >= 0;
        if (!b->shared) {
                char hex[ND_DIGEST_HEX];

                (void) snprintf(name, sizeof name, "blob-%s", nd_digest_hex(&b->digest, hex));
                directory = blobs_fd;
                st.st_size = 0;
                b->fd = nd_sys->openat(blobs_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        }
        if (b->fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create the download file");
        b->reader = nd_sys->openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (b->reader < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open the download file");
        b->on_disk = (uint64_t) st.st_size;
        b->resumed = b->on_disk > 0;
        return nullptr;
}

static void announce(struct pull_blob *b) {
        uint64_t count = b->there - b->announced;

        nd_assert(b->announced <= b->there && b->there <= b->size);
        if (count == 0)
                return;
        nd_vector_each (fd, &b->listeners) {
                /* never blocks: the counter cannot get full */
                (void) !write(*fd, &count, sizeof count);
        }
        b->announced = b->there;
}

struct nd_error *pull_blob_rehash(struct pull_blob *b, bool *ret_more) {
        nd_autofree char *piece = b->there < b->on_disk ? nd_malloc(PIECE) : nullptr;

        for (int i = 0; i < PIECES && b->there < b->on_disk; i++) {
                uint64_t left = b->on_disk - b->there;
                ssize_t n = pread(b->fd, piece, left < PIECE ? (size_t) left : PIECE, (off_t) b->there);

                if (n <= 0)
                        return nd_error_new(ND_INTERNAL, n < 0 ? errno : EIO, "read the partial download");
                nd_digest_hash_add(&b->hash, piece, (size_t) n);
                b->there += (uint64_t) n;
                announce(b);
        }
        *ret_more = b->there < b->on_disk;
        return nullptr;
}

struct nd_error *pull_blob_write(struct pull_blob *b, const char *bytes, size_t length) {
        if (length > b->size - b->there)
                return nd_error_new(ND_DATA_LOSS, EFBIG, "a layer is longer than the %llu bytes in its manifest",
                                    (unsigned long long) b->size);
        for (size_t done = 0; done < length;) {
                ssize_t n = nd_sys->pwrite(b->fd, bytes + done, length - done, (off_t) (b->there + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write the download file");
                done += (size_t) n;
        }
        nd_digest_hash_add(&b->hash, bytes, length);
        b->there += length;
        if (b->there - b->announced >= ANNOUNCEMENT || b->there == b->size)
                announce(b);
        return nullptr;
}

struct nd_error *pull_blob_verify(struct pull_blob *b) {
        char wanted[ND_DIGEST_TEXT], found[ND_DIGEST_TEXT];
        struct nd_digest digest;

        if (b->there != b->size)
                return nd_error_new(ND_DATA_LOSS, 0, "a layer has %llu bytes instead of %llu as in its manifest",
                                    (unsigned long long) b->there, (unsigned long long) b->size);
        digest = nd_digest_hash_finish(&b->hash);
        if (nd_digest_equal(&digest, &b->digest)) {
                b->verified = true;
                return nullptr;
        }
        b->there = b->announced = b->on_disk = 0;
        if (nd_sys->ftruncate(b->fd, 0) < 0)
                return nd_error_new(ND_INTERNAL, errno, "truncate the download file");
        return nd_error_new(ND_DATA_LOSS, 0, "digest mismatch: layer %s has digest %s", nd_digest_text(&b->digest, wanted),
                            nd_digest_text(&digest, found));
}

void pull_blob_subscribe(struct pull_blob *b, int event_fd) {
        announce(b); /* for earlier listeners */
        nd_vector_push(&b->listeners, event_fd);
        if (b->there > 0)
                (void) !write(event_fd, &b->there, sizeof b->there);
}

void pull_blob_unsubscribe(struct pull_blob *b, int event_fd) {
        for (size_t i = 0; i < b->listeners.count; i++)
                if (b->listeners.items[i] == event_fd) {
                        b->listeners.items[i] = b->listeners.items[--b->listeners.count];
                        return;
                }
}

void pull_blob_remove(struct pull_blob *b, int partial_fd, int blobs_fd) {
        char hex[ND_DIGEST_HEX], name[ND_DIGEST_HEX + 8];

        (void) nd_digest_hex(&b->digest, hex);
        (void) snprintf(name, sizeof name, "blob-%s", hex);
        (void) nd_sys->unlinkat(b->shared ? partial_fd : blobs_fd, b->shared ? hex : name, 0);
}
