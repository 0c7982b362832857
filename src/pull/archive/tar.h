/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - streaming reader of the tar archive of an image layer: bytes in, entries out
 *
 * Why not libarchive: a layer is ustar, PAX or GNU tar and never anything else; the decompressor
 * pushes data (libarchive pulls); file contents go from its buffer to write() without a copy; and
 * the code that parses hostile data is small enough to review at once and to fuzz alone. Go's
 * archive/tar, which containerd, CRI-O and the image builders use, is the reference for odd cases.
 * Sparse files are rejected: no image builder writes them. */
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
        TAR_PATH = 4095,             /* limit of a path or link target */
        TAR_EXTENSION = 1024 * 1024, /* limit of PAX records or a GNU long name */
        TAR_XATTRS = 64,             /* limit per entry */
        TAR_XATTR_VALUE = 64 * 1024, /* the kernel's limit */
};

struct pull_tar_xattr {
        char *name;
        char *value; /* any bytes */
        size_t length;
};

/* Valid until the sink's entry() returns, the extended attributes until its end() does. Strings
 * have no embedded null byte; the path is as in the archive. */
struct pull_tar_entry {
        enum pull_tar_kind kind;
        const char *path;
        const char *link; /* target of a symbolic or hard link, else "" */
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
        struct nd_error *(*end)(void *userdata); /* after the last byte of every entry */
        void *userdata;
};

struct pull_tar;

[[nodiscard]] struct pull_tar *pull_tar_new(const struct pull_tar_sink *sink);
void pull_tar_free(struct pull_tar *tar);
static inline void pull_tar_done(struct pull_tar **tar) {
        pull_tar_free(*tar);
        *tar = nullptr;
}

/* Takes any number of bytes. After an error no more may be fed. */
[[nodiscard]] struct nd_error *pull_tar_feed(struct pull_tar *tar, const char *bytes, size_t length);

/* Ends the stream: an error when it ended inside an entry. */
[[nodiscard]] struct nd_error *pull_tar_finish(const struct pull_tar *tar);
