/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - the tar of an image layer, as a codec: bytes are fed in, entries come out
 *
 * A reader of our own and not libarchive: a layer is ustar, PAX or GNU tar and never anything else, the bytes come from a
 * decompressor that pushes (libarchive pulls), file contents go from the decompressor's buffer to write() without a copy, and what
 * parses hostile bytes is small enough to read in one sitting and to fuzz alone. Go's archive/tar, with which the field's tools write
 * and read layers, is the measure for odd cases. Sparse files are refused: no image builder writes them. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"

enum pull_tar_kind {
        TAR_FILE,
        TAR_DIRECTORY,
        TAR_SYMLINK,
        TAR_HARDLINK,
        TAR_CHARACTER,
        TAR_BLOCK,
        TAR_FIFO,
};

enum {
        TAR_PATH = 4095,             /* most bytes of a path or link target */
        TAR_EXTENSION = 1024 * 1024, /* most bytes of PAX records or a GNU long name */
        TAR_XATTRS = 64,             /* most extended attributes of an entry */
        TAR_XATTR_VALUE = 64 * 1024, /* the kernel's own ceiling */
};

struct pull_tar_xattr {
        char *name;
        char *value; /* any bytes */
        size_t length;
};

/* Lives until the sink's entry() returns, the extended attributes until its end() does. Texts hold no null byte; the path is as the
 * archive has it. */
struct pull_tar_entry {
        enum pull_tar_kind kind;
        const char *path;
        const char *link; /* target of a symbolic or hard link; "" otherwise */
        mode_t mode;      /* permission bits with setuid, setgid and sticky */
        uint32_t uid, gid;
        int64_t mtime;
        uint32_t mtime_ns;
        uint64_t size; /* bytes that data() will get; 0 unless a file */
        uint32_t major, minor;
        const struct pull_tar_xattr *xattrs;
        size_t xattr_count;
};

struct pull_tar_sink {
        struct nd_error *(*entry)(void *userdata, const struct pull_tar_entry *entry);
        struct nd_error *(*data)(void *userdata, const char *bytes, size_t length);
        struct nd_error *(*end)(void *userdata); /* after the last byte of an entry, for every entry */
        void *userdata;
};

struct pull_tar;

[[nodiscard]] struct pull_tar *pull_tar_new(const struct pull_tar_sink *sink);
void pull_tar_free(struct pull_tar *tar);
static inline void pull_tar_done(struct pull_tar **tar) {
        pull_tar_free(*tar);
        *tar = nullptr;
}

/* Any number of bytes. After an error nothing more may be fed. */
[[nodiscard]] struct nd_error *pull_tar_feed(struct pull_tar *tar, const char *bytes, size_t length);

/* The stream is over: an error when it ended inside of an entry. */
[[nodiscard]] struct nd_error *pull_tar_finish(const struct pull_tar *tar);
