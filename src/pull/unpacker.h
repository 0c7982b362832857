/* SPDX-License-Identifier: Apache-2.0 */
/* unpacker.h - nodens-unpack, seen from the side that fetches layers
 *
 * Jobs go in, answers come out; every job gets exactly one answer, even when its process crashes. */
#pragma once

#include "oci/manifest.h"
#include "pull/channel.h"

struct nd_unpacker;

/* Waits until the program at the other end of the channel says that its jail stands. The descriptor is borrowed. */
[[nodiscard]] struct nd_error *nd_unpacker_meet(int channel_fd, struct nd_unpacker **ret);
void nd_unpacker_free(struct nd_unpacker *unpacker);
int nd_unpacker_fd(const struct nd_unpacker *unpacker); /* readable when there is an answer */

/* Whether a layer is there already, of an earlier pull or of this one. */
[[nodiscard]] struct nd_error *nd_unpacker_look(struct nd_unpacker *unpacker, const struct nd_digest *chain, bool *ret_found,
                                                uint64_t *ret_size, uint64_t *ret_inodes);

/* Unpacks a blob while it is being written: available_fd is an eventfd to which the writer adds the number of bytes that are new in the
 * file. */
struct nd_unpack_job {
        uint32_t id;
        int blob_fd;
        int available_fd;
        uint64_t blob_size;
        uint64_t ceiling; /* most bytes of the unpacked stream */
        enum nd_compression compression;
        const struct nd_digest *parent; /* the chain of the layer below; nullptr for the lowest */
};
[[nodiscard]] struct nd_error *nd_unpacker_unpack(struct nd_unpacker *unpacker, const struct nd_unpack_job *job);

/* Settles an unpacked layer on its parent, which must be there, and puts it into place. */
[[nodiscard]] struct nd_error *nd_unpacker_place(struct nd_unpacker *unpacker, uint32_t id);

void nd_unpacker_cancel(struct nd_unpacker *unpacker, uint32_t id); /* its answer will come: an error */

/* All layers are in place: makes them durable and ends. */
[[nodiscard]] struct nd_error *nd_unpacker_finish(struct nd_unpacker *unpacker);

struct nd_unpack_answer {
        uint32_t id;
        bool placed;             /* it was a place job */
        struct nd_error *error;  /* the receiver's to free */
        struct nd_digest digest; /* the diff id, or the chain of a layer that is placed */
        uint64_t stream;         /* bytes of the unpacked stream */
        uint64_t size, inodes;
};
/* False when no answer is there yet. */
[[nodiscard]] struct nd_error *nd_unpacker_receive(struct nd_unpacker *unpacker, struct nd_unpack_answer *ret,
                                                   bool *ret_there);
