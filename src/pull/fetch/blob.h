/* SPDX-License-Identifier: Apache-2.0 */
/* blob.h - download file of a compressed layer, hashed while it is written
 *
 * The file is partial/<hex>, so that a later pull can resume an interrupted download. Unpackers
 * read it while it grows: each listens on an eventfd that counts new bytes. Two pulls of one layer
 * do not share a file: the second one uses the blobs directory of its own pull. */
#pragma once

#include "base/vector.h"
#include "oci/digest.h"

struct pull_blob {
        struct nd_digest digest;
        uint64_t size;
        int fd;             /* for writing; -EBADF before pull_blob_open() */
        int reader;         /* the same file for unpackers, read-only */
        bool shared;        /* the file is in partial/ and ours to remove */
        uint64_t on_disk;   /* bytes left by an earlier pull; hashed by pull_blob_rehash() */
        uint64_t there;     /* bytes written and hashed */
        uint64_t announced; /* bytes that were reported to listeners */
        bool resumed;       /* some bytes came from an earlier pull */
        bool verified;      /* complete, with the right digest */
        struct nd_digest_hash hash;
        nd_vector(int) listeners; /* eventfds, borrowed */
};

void pull_blob_init(const struct nd_digest *digest, uint64_t size, struct pull_blob *ret);
void pull_blob_done(struct pull_blob *blob);

/* Opens or creates the file: in blobs if the one in partial is in use. */
[[nodiscard]] struct nd_error *pull_blob_open(struct pull_blob *blob, int partial_fd, int blobs_fd);

/* Hashes a piece of the partial download; *ret_more when there is more to do. */
[[nodiscard]] struct nd_error *pull_blob_rehash(struct pull_blob *blob, bool *ret_more);

[[nodiscard]] struct nd_error *pull_blob_write(struct pull_blob *blob, const char *bytes, size_t length);

/* Verifies the digest of the complete download. ND_DATA_LOSS if it is wrong; the file is truncated
 * then, so that a retry starts afresh. */
[[nodiscard]] struct nd_error *pull_blob_verify(struct pull_blob *blob);

/* Adds a listener: an eventfd that gets the number of bytes now and later. */
void pull_blob_subscribe(struct pull_blob *blob, int event_fd);
void pull_blob_unsubscribe(struct pull_blob *blob, int event_fd);

/* when the layer is unpacked */
void pull_blob_remove(struct pull_blob *blob, int partial_fd, int blobs_fd);
