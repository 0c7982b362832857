/* SPDX-License-Identifier: Apache-2.0 */
/* unpack-client.h - client of nodens-unpack, in nodens-fetch
 *
 * Every job gets exactly one reply, even when its process crashes. */
#pragma once

#include "oci/manifest.h"
#include "pull/protocol/messages.h"

struct pull_unpack_client;

/* Waits until the program at the other end of the channel says that its jail stands. The descriptor is borrowed. */
[[nodiscard]] struct nd_error *pull_unpack_client_connect(int channel_fd, struct pull_unpack_client **ret);
void pull_unpack_client_free(struct pull_unpack_client *unpacker);
int pull_unpack_client_fd(const struct pull_unpack_client *unpacker); /* readable when there is a reply */

/* Whether a layer is there already, of an earlier pull or of this one. */
[[nodiscard]] struct nd_error *pull_unpack_client_lookup(struct pull_unpack_client *unpacker, const struct nd_digest *chain,
                                                         bool *ret_found, uint64_t *ret_size, uint64_t *ret_inodes);

/* Unpacks a blob while it is being written: available_fd is an eventfd to which the writer adds the number of bytes that are new in the
 * file. */
struct pull_unpack_job {
        uint32_t id;
        int blob_fd;
        int available_fd;
        uint64_t blob_size;
        uint64_t ceiling; /* most bytes of the unpacked stream */
        enum nd_oci_compression compression;
        const struct nd_digest *parent; /* the chain of the layer below; nullptr for the lowest */
};
[[nodiscard]] struct nd_error *pull_unpack_client_unpack(struct pull_unpack_client *unpacker,
                                                         const struct pull_unpack_job *job);

/* Finalizes an unpacked layer on its parent, which must be there, and puts it into place. */
[[nodiscard]] struct nd_error *pull_unpack_client_place(struct pull_unpack_client *unpacker, uint32_t id);

void pull_unpack_client_cancel(struct pull_unpack_client *unpacker, uint32_t id); /* its reply will be an error */

/* All layers are in place: makes them durable and ends. */
[[nodiscard]] struct nd_error *pull_unpack_client_finish(struct pull_unpack_client *unpacker);

struct pull_unpack_reply {
        uint32_t id;
        bool placed;             /* it was a place job */
        struct nd_error *error;  /* the receiver's to free */
        struct nd_digest digest; /* the diff id, or the chain of a layer that is placed */
        uint64_t stream;         /* bytes of the unpacked stream */
        uint64_t size, inodes;
};
/* False when no reply is there yet. */
[[nodiscard]] struct nd_error *pull_unpack_client_receive(struct pull_unpack_client *unpacker, struct pull_unpack_reply *ret,
                                                          bool *ret_there);
