/* SPDX-License-Identifier: Apache-2.0 */
/* channel.h - what nodens-fetch and nodens-unpack say to each other, over a SEQPACKET pair that the daemon made
 *
 * The fetcher talks to the network, so each of its messages is a stranger's: numbers and fixed fields only, no path, no digest that names a
 * result. The unpacker decides by itself what a layer is called.
 *
 *      LOOK    chain                   is there such a layer?         answer: found, size, inodes
 *      UNPACK  id, parent, blob        unpacks a blob                 answer: diff id, bytes of the stream
 *      PLACE   id                      the layer counts               answer: its chain
 *      CANCEL  id                                                     no answer but the job's own
 *      FINISH                          sync all of it and end         no answer
 *
 * Every UNPACK and PLACE has exactly one answer. */
#pragma once

#include "oci/digest.h"

enum {
        ND_CHANNEL_TEXT = 1024, /* bytes of an error's text */
};

enum nd_channel_kind {
        ND_CHANNEL_READY, /* the unpacker's first message: its jail stands */
        ND_CHANNEL_LOOK,
        ND_CHANNEL_UNPACK,
        ND_CHANNEL_PLACE,
        ND_CHANNEL_CANCEL,
        ND_CHANNEL_FINISH,
};

/* Comes with two descriptors for ND_CHANNEL_UNPACK: the blob's file to read, and an eventfd that counts the bytes that are in it. */
struct nd_channel_job {
        uint32_t kind;
        uint32_t id;
        uint32_t compression; /* enum nd_compression */
        uint32_t has_chain;
        uint64_t blob_size;
        uint64_t ceiling;                  /* most bytes of the unpacked stream */
        uint8_t chain[SHA256_DIGEST_SIZE]; /* LOOK: the layer; UNPACK: the layer below, if any */
};

struct nd_channel_answer {
        uint32_t kind;
        uint32_t id;
        int32_t code, error_number;
        uint32_t found;
        uint32_t reserved;
        uint64_t stream, size, inodes;
        uint8_t digest[SHA256_DIGEST_SIZE]; /* UNPACK: the diff id; PLACE: the chain */
        char text[ND_CHANNEL_TEXT];
};
