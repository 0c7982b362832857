/* SPDX-License-Identifier: Apache-2.0 */
/* blob.h - a compressed layer on its way to the disk, hashed as it comes
 *
 * The file is partial/<hex>, so that a later pull goes on where this one was cut off. Unpackers read it while it grows: each listens on an
 * eventfd that counts new bytes. Two pulls of one layer do not share a file: the second one writes to the blobs of its own pull. */
#pragma once

#include "base/vector.h"
#include "oci/digest.h"

struct pull_blob {
        struct nd_digest digest;
        uint64_t size;
        int fd;             /* for writing; -EBADF before pull_blob_open() */
        int reader;         /* the same file for unpackers, read only */
        bool shared;        /* the file is in partial/, and ours to remove there */
        uint64_t on_disk;   /* bytes that an earlier pull left; hashed by pull_blob_rehash() */
        uint64_t there;     /* bytes written and hashed */
        uint64_t announced; /* as many of them as listeners know of */
        bool resumed;       /* some of them came from an earlier pull */
        bool verified;      /* complete, and the digest is right */
        struct nd_digest_hash hash;
        nd_vector(int) listeners; /* eventfds, borrowed */
};

void pull_blob_init(const struct nd_digest *digest, uint64_t size, struct pull_blob *ret);
void pull_blob_done(struct pull_blob *blob);

/* Finds or makes the file. blobs is where it goes when the one in partial is in use. */
[[nodiscard]] struct nd_error *pull_blob_open(struct pull_blob *blob, int partial_fd, int blobs_fd);

/* Hashes a piece of what an earlier pull left; true when there is more to do. */
[[nodiscard]] struct nd_error *pull_blob_rehash(struct pull_blob *blob, bool *ret_more);

[[nodiscard]] struct nd_error *pull_blob_write(struct pull_blob *blob, const char *bytes, size_t length);

/* All bytes are there: compares the digest. A wrong one is ND_DATA_LOSS; the file is emptied, so that a retry starts afresh. */
[[nodiscard]] struct nd_error *pull_blob_verify(struct pull_blob *blob);

/* Tells an eventfd how much is there, and of everything that comes. */
void pull_blob_subscribe(struct pull_blob *blob, int event_fd);
void pull_blob_unsubscribe(struct pull_blob *blob, int event_fd);

void pull_blob_remove(struct pull_blob *blob, int partial_fd,
                      int blobs_fd); /* the layer is unpacked: the file is not needed any more */
