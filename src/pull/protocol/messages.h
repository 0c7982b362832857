/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - messages between nodens-fetch and nodens-unpack, over a SEQPACKET pair from the
 * daemon
 *
 * The fetcher talks to the network, so its messages are untrusted: only numbers and fixed fields,
 * and no digest that names a result. The unpacker computes the name of a layer itself. The one path
 * is that of an artifact's file: it is part of the layer's diff ID, and only the worker that sees
 * nothing but the layer's tree uses it.
 *
 *      LOOKUP  chain                   does the layer exist?          reply: found, size, inodes
 *      UNPACK  id, parent, blob        unpacks a blob                 reply: diff ID, stream size
 *      PLACE   id                      puts it into place             reply: its chain
 *      CANCEL  id                                                     no reply of its own
 *      FINISH                          sync all of it and end         no reply
 *
 * Every UNPACK and PLACE has exactly one reply. */
#pragma once

#include "oci/artifact.h"
#include "oci/digest.h"

enum {
        MESSAGE_TEXT = 1024, /* limit of an error's text */
};

enum pull_message_kind {
        MESSAGE_READY, /* the unpacker's first message: its jail is set up */
        MESSAGE_LOOKUP,
        MESSAGE_UNPACK,
        MESSAGE_PLACE,
        MESSAGE_CANCEL,
        MESSAGE_FINISH,
};

/* MESSAGE_UNPACK comes with two descriptors: the blob's file to read, and an eventfd that counts
 * the bytes in it. */
struct pull_message_job {
        uint32_t kind;
        uint32_t id;
        uint32_t compression; /* enum nd_oci_compression */
        uint32_t has_chain;
        uint64_t blob_size;
        uint64_t ceiling;                  /* limit of the unpacked stream */
        uint8_t chain[SHA256_DIGEST_SIZE]; /* LOOKUP: the layer; UNPACK: the layer below, if any */
        char file[ND_ARTIFACT_PATH + 1];   /* UNPACK: path of an artifact's file; "" = an archive */
};

struct pull_message_reply {
        uint32_t kind;
        uint32_t id;
        int32_t code, error_number;
        uint32_t found;
        uint32_t reserved;
        uint64_t stream, size, inodes;
        uint8_t digest[SHA256_DIGEST_SIZE]; /* UNPACK: the diff ID; PLACE: the chain */
        char text[MESSAGE_TEXT];
};
