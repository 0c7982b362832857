/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - the processes that make a layer's tree, each with one task and minimal privileges
 *
 *      blob file -> decompress -> pipe -> hash -> pipe -> tar -> tree
 *
 * The supervisor forks them. They confine themselves before they read the first byte, and end with
 * one report. Only the hash worker's digest and count are trusted: it moves bytes and parses
 * nothing, so it has hashed what the tar worker got. */
#pragma once

#include "oci/digest.h"
#include "oci/layer.h"
#include "oci/manifest.h"
#include "pull/jail/jail.h"

enum {
        WORKER_TEXT = 1024,
        WORKER_MARKS = 16 * 1024 * 1024, /* limit of a layer's marks */
        WORKER_FILE_MODE = 0444,         /* of an artifact's file, whose owner is root */
};

struct pull_worker_report {
        int32_t code, error_number;
        uint32_t quiet;  /* another worker failed: its pipe was closed */
        uint32_t at_end; /* tar: the whole stream was read */
        uint32_t marks;  /* tar: the layer must be finalized */
        uint32_t reserved;
        uint64_t stream;                     /* hash */
        uint64_t size, inodes;               /* tar */
        struct nd_layer_owner owner;         /* tar */
        uint8_t diff_id[SHA256_DIGEST_SIZE]; /* hash */
        char text[WORKER_TEXT];
};

/* A worker's task; the descriptors are the supervisor's, and the worker closes all that are not
 * named here. */
struct nd_own_userns;

struct pull_worker_plan {
        const struct pull_jail_filters *filters;
        const struct nd_own_userns *squash; /* see unpack.h; nullptr = owners stay */
        int report;
        /* decompress: the blob and a pipe; hash: pipes; tar: a pipe and the marks to write;
         * finalize: the marks */
        int input, output;
        int available;      /* decompress */
        uint64_t blob_size; /* decompress */
        uint64_t ceiling;   /* decompress, hash */
        enum nd_oci_compression compression;
        const char *tree; /* tar, finalize: the directory */
        bool lowest;      /* tar */
        /* Not nullptr: the blob is the content of this file, and its size is known. decompress
         * copies it as it is, tar writes it instead of reading an archive. */
        const char *file;
        char *const *lower; /* finalize: the lower trees, topmost first */
        size_t lower_count;
};

[[noreturn]] void pull_worker_decompress(const struct pull_worker_plan *plan);
[[noreturn]] void pull_worker_hash(const struct pull_worker_plan *plan);
[[noreturn]] void pull_worker_tar(const struct pull_worker_plan *plan);
[[noreturn]] void pull_worker_finalize(const struct pull_worker_plan *plan);
