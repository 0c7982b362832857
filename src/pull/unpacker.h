/* SPDX-License-Identifier: Apache-2.0 */
/* unpacker.h - the process that unpacks layers, seen from the side that fetches them
 *
 * Jobs go in, answers come out; every job gets exactly one answer, even when its process crashes. */
#pragma once

#include "oci/digest.h"
#include "oci/manifest.h"

enum {
        ND_UNPACKER_TEXT = 1024, /* bytes of an error's text */
};

struct nd_unpacker;

/* Starts it in its jail; the directories are the staging directory and the store's layers. */
[[nodiscard]] struct nd_error *nd_unpacker_start(int staging_fd, int layers_fd, struct nd_unpacker **ret);
void nd_unpacker_free(struct nd_unpacker *unpacker);
int nd_unpacker_fd(const struct nd_unpacker *unpacker); /* readable when there is an answer */

/* Unpacks a blob into work/<id>/fs of the staging directory, while it is being written: available_fd is an eventfd to which the writer
 * adds the number of bytes that are new in the file. */
struct nd_unpack_job {
        uint32_t id;
        int blob_fd;
        int available_fd;
        uint64_t blob_size;
        uint64_t ceiling; /* most bytes of the unpacked stream */
        enum nd_compression compression;
        bool lowest;
};
[[nodiscard]] struct nd_error *nd_unpacker_unpack(struct nd_unpacker *unpacker, const struct nd_unpack_job *job);

/* Settles work/<id>/fs on the layers below, the topmost first: each is layers/<chain>/fs of the staging directory or of the store. */
[[nodiscard]] struct nd_error *nd_unpacker_settle(struct nd_unpacker *unpacker, uint32_t id, const struct nd_digest *lower,
                                                  size_t count);

void nd_unpacker_cancel(struct nd_unpacker *unpacker, uint32_t id); /* its answer will come: an error */

struct nd_unpack_answer {
        uint32_t id;
        bool settled;           /* it was a settle job */
        struct nd_error *error; /* the receiver's to free */
        struct nd_digest diff_id;
        uint64_t stream; /* bytes of the unpacked stream */
        uint64_t size, inodes;
        bool marks; /* it has to be settled */
};
/* False when no answer is there yet. */
[[nodiscard]] struct nd_error *nd_unpacker_receive(struct nd_unpacker *unpacker, struct nd_unpack_answer *ret,
                                                   bool *ret_there);
