/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - messages between nodens-fetch and nodens-unpack, over a SEQPACKET pair that the daemon made
 *
 * The fetcher talks to the network, so each of its messages is a stranger's: numbers and fixed fields only, no path, no digest that names a
 * result. The unpacker decides by itself what a layer is called.
 *
 *      LOOKUP  chain                   is there such a layer?         reply: found, size, inodes
 *      UNPACK  id, parent, blob        unpacks a blob                 reply: diff id, bytes of the stream
 *      PLACE   id                      the layer counts               reply: its chain
 *      CANCEL  id                                                     no reply but the job's own
 *      FINISH                          sync all of it and end         no reply
 *
 * Every UNPACK and PLACE has exactly one reply. */
#pragma once

#include "oci/digest.h"

enum {
        MESSAGE_TEXT = 1024, /* bytes of an error's text */
};

enum pull_message_kind {
        MESSAGE_READY, /* the unpacker's first message: its jail stands */
        MESSAGE_LOOKUP,
        MESSAGE_UNPACK,
        MESSAGE_PLACE,
        MESSAGE_CANCEL,
        MESSAGE_FINISH,
};

/* Comes with two descriptors for MESSAGE_UNPACK: the blob's file to read, and an eventfd that counts the bytes that are in it. */
struct pull_message_job {
        uint32_t kind;
        uint32_t id;
        uint32_t compression; /* enum nd_oci_compression */
        uint32_t has_chain;
        uint64_t blob_size;
        uint64_t ceiling;                  /* most bytes of the unpacked stream */
        uint8_t chain[SHA256_DIGEST_SIZE]; /* LOOKUP: the layer; UNPACK: the layer below, if any */
};

struct pull_message_reply {
        uint32_t kind;
        uint32_t id;
        int32_t code, error_number;
        uint32_t found;
        uint32_t reserved;
        uint64_t stream, size, inodes;
        uint8_t digest[SHA256_DIGEST_SIZE]; /* UNPACK: the diff id; PLACE: the chain */
        char text[MESSAGE_TEXT];
};
