/* SPDX-License-Identifier: Apache-2.0 */
/* unpack-client.h - client of nodens-unpack, in nodens-fetch
 *
 * Every job gets exactly one reply, even when its process crashes. */
#pragma once

#include "oci/manifest.h"
#include "pull/protocol/messages.h"

struct pull_unpack_client;

/* Waits until nodens-unpack reports that its jail is set up. The descriptor is borrowed. */
[[nodiscard]] struct nd_error *pull_unpack_client_connect(int channel_fd, struct pull_unpack_client **ret);
void pull_unpack_client_free(struct pull_unpack_client *unpacker);
/* readable when there is a reply */
int pull_unpack_client_fd(const struct pull_unpack_client *unpacker);

/* Checks whether a layer exists, from an earlier pull or this one. */
[[nodiscard]] struct nd_error *pull_unpack_client_lookup(struct pull_unpack_client *unpacker, const struct nd_digest *chain,
                                                         bool *ret_found, uint64_t *ret_size, uint64_t *ret_inodes);

/* Unpacks a blob while it is being written: available_fd is an eventfd to which the writer adds the
 * number of new bytes in the file. */
struct pull_unpack_job {
        uint32_t id;
        int blob_fd;
        int available_fd;
        uint64_t blob_size;
        uint64_t ceiling; /* limit of the unpacked stream */
        enum nd_oci_compression compression;
        const char *file;               /* path of an artifact's file; nullptr = an archive */
        const struct nd_digest *parent; /* chain ID of the layer below; nullptr for the lowest */
};
[[nodiscard]] struct nd_error *pull_unpack_client_unpack(struct pull_unpack_client *unpacker,
                                                         const struct pull_unpack_job *job);

/* Finalizes an unpacked layer on its parent, which must be placed, and puts it into place. */
[[nodiscard]] struct nd_error *pull_unpack_client_place(struct pull_unpack_client *unpacker, uint32_t id);

/* its reply will be an error */
void pull_unpack_client_cancel(struct pull_unpack_client *unpacker, uint32_t id);

/* Makes all placed layers durable and ends. */
[[nodiscard]] struct nd_error *pull_unpack_client_finish(struct pull_unpack_client *unpacker);

struct pull_unpack_reply {
        uint32_t id;
        bool placed;             /* it was a place job */
        struct nd_error *error;  /* owned by the receiver */
        struct nd_digest digest; /* the diff ID, or the chain ID of a placed layer */
        uint64_t stream;         /* bytes of the unpacked stream */
        uint64_t size, inodes;
};
/* *ret_there is false when there is no reply yet. */
[[nodiscard]] struct nd_error *pull_unpack_client_receive(struct pull_unpack_client *unpacker, struct pull_unpack_reply *ret,
                                                          bool *ret_there);
