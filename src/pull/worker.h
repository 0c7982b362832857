/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the processes that make a layer's tree, each with one job and the least that it needs
 *
 *      blob file -> inflate -> pipe -> hash -> pipe -> tar -> tree
 *
 * All of them are forked by the keeper, lock themselves in before they read the first byte, and end with one report. Only the hash
 * worker's digest and count are believed: it moves bytes and parses nothing, so what it has hashed is what the tar worker got. */
#pragma once

#include "oci/digest.h"
#include "oci/manifest.h"
#include "pull/jail.h"

enum {
        ND_WORKER_TEXT = 1024,
        ND_WORKER_MARKS = 16 * 1024 * 1024, /* bytes of a layer's marks */
};

struct nd_worker_report {
        int32_t code, error_number;
        uint32_t quiet;  /* the error is another worker's: its pipe was closed */
        uint32_t at_end; /* tar: the whole stream was read */
        uint32_t marks;  /* tar: the layer has to be settled */
        uint32_t reserved;
        uint64_t stream;                     /* hash */
        uint64_t size, inodes;               /* tar */
        uint8_t diff_id[SHA256_DIGEST_SIZE]; /* hash */
        char text[ND_WORKER_TEXT];
};

/* What a worker is to do; descriptors are the keeper's, and the worker closes all that are not named here. */
struct nd_worker_plan {
        const struct nd_jail_filters *filters;
        int report;
        int input,
                output; /* inflate: the blob and a pipe; hash: pipes; tar: a pipe and the marks to write; settle: the marks */
        int available;  /* inflate */
        uint64_t blob_size; /* inflate */
        uint64_t ceiling;   /* inflate, hash */
        enum nd_compression compression;
        const char *tree;   /* tar, settle: the directory */
        bool lowest;        /* tar */
        char *const *lower; /* settle: the trees below, the topmost first */
        size_t lower_count;
};

[[noreturn]] void nd_worker_inflate(const struct nd_worker_plan *plan);
[[noreturn]] void nd_worker_hash(const struct nd_worker_plan *plan);
[[noreturn]] void nd_worker_tar(const struct nd_worker_plan *plan);
[[noreturn]] void nd_worker_settle(const struct nd_worker_plan *plan);
