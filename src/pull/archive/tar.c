/* SPDX-License-Identifier: Apache-2.0 */
/* tar.c - see tar.h
 *
 * Theory of operation
 *   Five states: @HEADER collects a block of 512 bytes; @EXTENSION collects the body of a PAX
 *   header or a GNU long name; @BODY passes a file's bytes on; @PADDING skips the rest of the last
 *   block; @OVER skips everything after the end mark (the layer's digest covers it, so the caller
 *   goes on feeding). PAX records and long names are kept in @next until the header that they
 *   belong to.
 * Invariant  sizes are limited to INT64_MAX when they are read, so rounding up to a block cannot
 * overflow. */
#include "pull/archive/tar.h"

#include <string.h>

enum { BLOCK = 512 };

enum state {
        HEADER,
        EXTENSION,
        BODY,
        PADDING,
        OVER,
};

/* A header's fields, POSIX.1-1988 with the later formats on top. */
struct header {
        char name[100];
        char mode[8];
        char uid[8];
        char gid[8];
        char size[12];
        char mtime[12];
        char checksum[8];
        char type;
        char link[100];
        char magic[6];
        char version[2];
        char uname[32];
        char gname[32];
        char major[8];
        char minor[8];
        char prefix[155];
        char rest[12];
};
static_assert(sizeof(struct header) == BLOCK);

/* Values from the extensions before a header. */
struct overrides {
        char *path;
        char *link;
        bool has_size, has_uid, has_gid, has_mtime;
        uint64_t size;
        uint32_t uid, gid;
        int64_t mtime;
        uint32_t mtime_ns;
        nd_vector(struct pull_tar_xattr) xattrs;
};

struct pull_tar {
        struct pull_tar_sink sink;
        enum state state;
        union {
                struct header header;
                char block[BLOCK];
        };
        size_t filled;  /* bytes in the block, in HEADER */
        uint64_t left;  /* remaining bytes of the body or extension */
        size_t padding; /* padding bytes after it */
        char extension_type;
        struct nd_text extension;
        struct overrides next;
};

static void overrides_done(struct overrides *o) {
        free(o->path);
        free(o->link);
        nd_vector_each (xattr, &o->xattrs) {
                free(xattr->name);
                free(xattr->value);
        }
        nd_vector_done(&o->xattrs);
        *o = (struct overrides) {};
}

struct pull_tar *pull_tar_new(const struct pull_tar_sink *sink) {
        struct pull_tar *tar = nd_new(struct pull_tar);

        tar->sink = *sink;
        tar->extension = ND_TEXT(TAR_EXTENSION);
        return tar;
}

void pull_tar_free(struct pull_tar *tar) {
        if (!tar)
                return;
        overrides_done(&tar->next);
        nd_text_done(&tar->extension);
        free(tar);
}

static struct nd_error *broken(const char *what) {
        return nd_error_new(ND_INVALID, 0, "invalid tar archive: %s", what);
}

/* Octal digits between blanks and null bytes, or base 256 when the first bit is set. */
static bool read_number(const char *field, size_t width, int64_t *ret) {
        const unsigned char *bytes = (const unsigned char *) field;
        uint64_t value = 0;
        size_t i = 0;

        if (bytes[0] & 0x80) {
                bool negative = bytes[0] & 0x40;

                value = negative ? ~UINT64_C(0) : 0;
                for (i = 0; i < width; i++) {
                        unsigned char byte = i == 0 ? (negative ? bytes[0] | 0x80 : bytes[0] & 0x7f) : bytes[i];

                        if ((value >> 56) != (negative ? 0xff : 0))
                                return false;
                        value = value << 8 | byte;
                }
                *ret = (int64_t) value;
                return (*ret < 0) == negative;
        }
        while (i < width && (bytes[i] == ' ' || bytes[i] == '\0'))
                i++;
        for (; i < width && bytes[i] >= '0' && bytes[i] <= '7'; i++)
                value = value << 3 | (uint64_t) (bytes[i] - '0'); /* 12 digits are 36 bits */
        for (; i < width; i++)
                if (bytes[i] != ' ' && bytes[i] != '\0')
                        return false;
        *ret = (int64_t) value;
        return true;
}

/* The sum of all bytes, with the checksum field as blanks; some old writers summed signed bytes. */
static bool checksum_right(const struct pull_tar *tar) {
        int64_t wanted, plain = 0, signed_sum = 0;

        if (!read_number(tar->header.checksum, sizeof tar->header.checksum, &wanted))
                return false;
        for (size_t i = 0; i < BLOCK; i++) {
                bool inside = i >= offsetof(struct header, checksum) && i < offsetof(struct header, type);
                int byte = inside ? ' ' : tar->block[i];

                plain += (unsigned char) byte;
                signed_sum += (signed char) byte;
        }
        return wanted == plain || wanted == signed_sum;
}

static bool block_empty(const struct pull_tar *tar) {
        for (size_t i = 0; i < BLOCK; i++)
                if (tar->block[i])
                        return false;
        return true;
}

static struct nd_error *set_text(char **field, const char *bytes, size_t length, bool *ret_set) {
        if (length > TAR_PATH)
                return nd_error_new(ND_EXHAUSTED, ENAMETOOLONG, "the layer has a path of more than %d bytes", TAR_PATH);
        if (memchr(bytes, '\0', length))
                return broken("null byte in a path");
        free(*field);
        *field = nd_strndup(bytes, length);
        if (ret_set)
                *ret_set = true;
        return nullptr;
}

static bool read_decimal(const char *bytes, size_t length, uint64_t ceiling, uint64_t *ret) {
        char digits[24];

        if (length == 0 || length >= sizeof digits)
                return false;
        memcpy(digits, bytes, length);
        digits[length] = '\0';
        return strlen(digits) == length && nd_text_parse_u64(digits, ceiling, ret) == 0;
}

/* Parses "1767225600.25", also negative; digits beyond a nanosecond are dropped. */
static bool read_time(const char *bytes, size_t length, int64_t *ret_s, uint32_t *ret_ns) {
        bool negative = length > 0 && *bytes == '-';
        const char *point;
        uint64_t seconds;
        uint32_t ns = 0, scale = 100000000;

        bytes += negative;
        length -= negative;
        point = memchr(bytes, '.', length);
        if (!read_decimal(bytes, point ? (size_t) (point - bytes) : length, INT64_MAX / 2, &seconds))
                return false;
        for (size_t i = point ? (size_t) (point - bytes) + 1 : length; i < length; i++, scale /= 10) {
                if (bytes[i] < '0' || bytes[i] > '9')
                        return false;
                ns += (uint32_t) (bytes[i] - '0') * scale;
        }
        *ret_s = negative ? -(int64_t) seconds - (ns > 0) : (int64_t) seconds;
        *ret_ns = negative && ns > 0 ? 1000000000 - ns : ns;
        return true;
}

static struct nd_error *set_xattr(struct overrides *o, const char *name, size_t name_length, const char *value,
                                  size_t length) {
        struct pull_tar_xattr xattr;

        if (name_length == 0 || name_length > 255 || memchr(name, '\0', name_length))
                return broken("name of an extended attribute");
        if (length > TAR_XATTR_VALUE)
                return nd_error_new(ND_EXHAUSTED, E2BIG, "the layer has an extended attribute of more than %d bytes",
                                    TAR_XATTR_VALUE);
        nd_vector_each (known, &o->xattrs) {
                if (strlen(known->name) == name_length && memcmp(known->name, name, name_length) == 0) {
                        free(known->value);
                        known->value = nd_malloc(length + 1);
                        memcpy(known->value, value, length);
                        known->length = length;
                        return nullptr;
                }
        }
        if (o->xattrs.count == TAR_XATTRS)
                return nd_error_new(ND_EXHAUSTED, E2BIG, "the layer has a file with more than %d extended attributes",
                                    TAR_XATTRS);
        xattr.name = nd_strndup(name, name_length);
        xattr.value = nd_malloc(length + 1);
        memcpy(xattr.value, value, length);
        xattr.length = length;
        nd_vector_push(&o->xattrs, xattr);
        return nullptr;
}

static bool key_is(const char *key, size_t length, const char *name) {
        return strlen(name) == length && memcmp(key, name, length) == 0;
}

static struct nd_error *apply_record(struct overrides *o, const char *key, size_t key_length, const char *value,
                                     size_t length) {
        static const char xattr[] = "SCHILY.xattr.", sparse[] = "GNU.sparse.";
        uint64_t number;

        if (key_is(key, key_length, "path"))
                return set_text(&o->path, value, length, nullptr);
        if (key_is(key, key_length, "linkpath"))
                return set_text(&o->link, value, length, nullptr);
        if (key_is(key, key_length, "size")) {
                o->has_size = read_decimal(value, length, INT64_MAX / 2, &o->size);
                return o->has_size ? nullptr : broken("PAX size");
        }
        if (key_is(key, key_length, "uid") || key_is(key, key_length, "gid")) {
                if (!read_decimal(value, length, UINT32_MAX - 1, &number))
                        return broken("PAX owner is not a valid user or group ID");
                *(*key == 'u' ? &o->uid : &o->gid) = (uint32_t) number;
                *(*key == 'u' ? &o->has_uid : &o->has_gid) = true;
                return nullptr;
        }
        if (key_is(key, key_length, "mtime")) {
                o->has_mtime = read_time(value, length, &o->mtime, &o->mtime_ns);
                return o->has_mtime ? nullptr : broken("PAX time");
        }
        if (key_length > sizeof xattr - 1 && memcmp(key, xattr, sizeof xattr - 1) == 0)
                return set_xattr(o, key + sizeof xattr - 1, key_length - (sizeof xattr - 1), value, length);
        if (key_length > sizeof sparse - 1 && memcmp(key, sparse, sizeof sparse - 1) == 0)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "the layer's tar has a sparse file, which is not supported");
        return nullptr;
}

/* Parses "<length> <key>=<value>\n"; the length counts all of it. */
static struct nd_error *apply_pax(struct overrides *o, const char *bytes, size_t left) {
        while (left > 0) {
                const char *blank = memchr(bytes, ' ', left < 24 ? left : 24), *equals;
                uint64_t length;
                size_t head;

                if (!blank || !read_decimal(bytes, (size_t) (blank - bytes), left, &length))
                        return broken("length of a PAX record");
                head = (size_t) (blank - bytes) + 1;
                if (length < head + 3 || bytes[length - 1] != '\n')
                        return broken("PAX record");
                equals = memchr(blank + 1, '=', length - head - 1);
                if (!equals || equals == blank + 1)
                        return broken("PAX record without a key");
                nd_try(apply_record(o, blank + 1, (size_t) (equals - blank) - 1, equals + 1,
                                    (size_t) (bytes + length - 1 - (equals + 1))));
                bytes += length;
                left -= length;
        }
        return nullptr;
}

static struct nd_error *end_extension(struct pull_tar *tar) {
        const char *bytes = nd_text_get(&tar->extension);
        size_t length = strnlen(bytes, tar->extension.length);
        struct nd_error *error = nullptr;

        if (tar->extension_type == 'x')
                error = apply_pax(&tar->next, bytes, tar->extension.length);
        else if (tar->extension_type == 'L')
                error = set_text(&tar->next.path, bytes, length, nullptr);
        else if (tar->extension_type == 'K')
                error = set_text(&tar->next.link, bytes, length, nullptr);
        nd_text_done(&tar->extension); /* do not keep a large one for the rest of the layer */
        tar->extension = ND_TEXT(TAR_EXTENSION);
        return error; /* 'g': nothing that we keep comes from global records */
}

static struct nd_error *start_extension(struct pull_tar *tar, int64_t size) {
        if (size > TAR_EXTENSION)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the layer's tar has a header of more than %d bytes", TAR_EXTENSION);
        tar->extension_type = tar->header.type;
        tar->left = (uint64_t) size;
        tar->padding = (size_t) (-size & (BLOCK - 1));
        tar->state = EXTENSION;
        return nullptr;
}

/* Returns the name in the header itself; in ustar it may have two parts. */
static void header_path(const struct pull_tar *tar, char ret[static 257]) {
        const struct header *h = &tar->header;
        size_t used = 0;

        if (memcmp(h->magic, "ustar\0", 6) == 0 && h->prefix[0]) {
                used = strnlen(h->prefix, sizeof h->prefix);
                memcpy(ret, h->prefix, used);
                ret[used++] = '/';
        }
        memcpy(ret + used, h->name, strnlen(h->name, sizeof h->name));
        ret[used + strnlen(h->name, sizeof h->name)] = '\0';
}

static struct nd_error *entry_kind(char type, const char *path, enum pull_tar_kind *ret) {
        size_t length = strlen(path);

        switch (type) {
        case '\0':
        case '0':
        case '7': /* contiguous: treated as a regular file */
                /* In archives from before type flags, a name with a trailing slash is a
                 * directory. */
                *ret = type == '\0' && length > 0 && path[length - 1] == '/' ? TAR_DIRECTORY : TAR_FILE;
                return nullptr;
        case '1':
                *ret = TAR_HARDLINK;
                return nullptr;
        case '2':
                *ret = TAR_SYMLINK;
                return nullptr;
        case '3':
                *ret = TAR_CHARACTER;
                return nullptr;
        case '4':
                *ret = TAR_BLOCK;
                return nullptr;
        case '5':
                *ret = TAR_DIRECTORY;
                return nullptr;
        case '6':
                *ret = TAR_FIFO;
                return nullptr;
        case 'S':
                return nd_error_new(ND_UNIMPLEMENTED, 0, "the layer's tar has a sparse file, which is not supported");
        default:
                return broken("entry of an unknown type");
        }
}

static bool is_id(int64_t number) {
        return number >= 0 && number < (int64_t) UINT32_MAX;
}

/* Merges a header with the extensions before it. Strings of the result live in the header's buffers
 * or in @next. */
static struct nd_error *fill_entry(const struct pull_tar *tar, int64_t size, const char *path, const char *link,
                                   struct pull_tar_entry *e) {
        const struct header *h = &tar->header;
        const struct overrides *next = &tar->next;
        int64_t mode, uid, gid, mtime, major = 0, minor = 0;

        if (!read_number(h->mode, sizeof h->mode, &mode) || !read_number(h->uid, sizeof h->uid, &uid) ||
            !read_number(h->gid, sizeof h->gid, &gid) || !read_number(h->mtime, sizeof h->mtime, &mtime))
                return broken("number in a header");
        if ((!next->has_uid && !is_id(uid)) || (!next->has_gid && !is_id(gid)))
                return broken("owner is not a valid user or group ID");
        e->path = next->path ? next->path : path;
        e->link = next->link ? next->link : link;
        if (!*e->path)
                return broken("entry without a name");
        nd_try(entry_kind(h->type, e->path, &e->kind));
        if ((e->kind == TAR_CHARACTER || e->kind == TAR_BLOCK) &&
            (!read_number(h->major, sizeof h->major, &major) || !read_number(h->minor, sizeof h->minor, &minor) ||
             !is_id(major) || !is_id(minor)))
                return broken("device number");
        e->mode = (mode_t) mode & 07777;
        e->uid = next->has_uid ? next->uid : (uint32_t) uid;
        e->gid = next->has_gid ? next->gid : (uint32_t) gid;
        e->mtime = next->has_mtime ? next->mtime : mtime;
        e->mtime_ns = next->has_mtime ? next->mtime_ns : 0;
        e->size = e->kind == TAR_FILE ? (uint64_t) size : 0;
        e->major = (uint32_t) major;
        e->minor = (uint32_t) minor;
        e->xattrs = next->xattrs.items;
        e->xattr_count = next->xattrs.count;
        return nullptr;
}

static struct nd_error *start_entry(struct pull_tar *tar, int64_t size) {
        struct pull_tar_entry entry = {};
        char path[257], link[101];

        header_path(tar, path);
        memcpy(link, tar->header.link, 100);
        link[100] = '\0';
        if (tar->next.has_size)
                size = (int64_t) tar->next.size;
        nd_try(fill_entry(tar, size, path, link, &entry));
        nd_try(tar->sink.entry(tar->sink.userdata, &entry));
        /* Only files have contents; old writers also gave links and directories a size, which is
         * ignored. */
        tar->left = entry.size;
        tar->padding = (size_t) (-entry.size & (BLOCK - 1));
        tar->state = BODY;
        return nullptr;
}

static struct nd_error *end_header(struct pull_tar *tar) {
        int64_t size;

        tar->filled = 0;
        if (block_empty(tar)) {
                tar->state = OVER;
                return nullptr;
        }
        if (!checksum_right(tar))
                return broken("header checksum (is it a tar archive?)");
        if (!read_number(tar->header.size, sizeof tar->header.size, &size) || size < 0 || size > INT64_MAX / 2)
                return broken("size in a header");
        if (tar->header.type && strchr("xgLK", tar->header.type))
                return start_extension(tar, size);
        return start_entry(tar, size);
}

/* Passes on as much of the body as possible; the padding follows its end. */
static struct nd_error *feed_body(struct pull_tar *tar, const char *bytes, size_t length) {
        if (tar->state == EXTENSION) {
                nd_text_append(&tar->extension, bytes, length);
                if (tar->left == 0)
                        nd_try(end_extension(tar));
        } else {
                if (length > 0)
                        nd_try(tar->sink.data(tar->sink.userdata, bytes, length));
                if (tar->left == 0) {
                        nd_try(tar->sink.end(tar->sink.userdata));
                        overrides_done(&tar->next);
                }
        }
        if (tar->left == 0)
                tar->state = tar->padding > 0 ? PADDING : HEADER;
        return nullptr;
}

struct nd_error *pull_tar_feed(struct pull_tar *tar, const char *bytes, size_t length) {
        while (tar->state != OVER) {
                size_t n;

                if (length == 0 && (tar->state == HEADER || tar->state == PADDING || tar->left > 0))
                        return nullptr;
                if (tar->state == HEADER) {
                        n = length < BLOCK - tar->filled ? length : BLOCK - tar->filled;
                        memcpy(tar->block + tar->filled, bytes, n);
                        tar->filled += n;
                        if (tar->filled == BLOCK)
                                nd_try(end_header(tar));
                } else if (tar->state == PADDING) {
                        n = length < tar->padding ? length : tar->padding;
                        tar->padding -= n;
                        if (tar->padding == 0)
                                tar->state = HEADER;
                } else {
                        n = length < tar->left ? length : (size_t) tar->left;
                        tar->left -= n;
                        nd_try(feed_body(tar, bytes, n));
                }
                bytes += n;
                length -= n;
        }
        return nullptr;
}

struct nd_error *pull_tar_finish(const struct pull_tar *tar) {
        /* Like Go's reader: the end mark may be missing, and padding after the last entry, but no
         * part of an entry. */
        if (tar->state == OVER || tar->state == PADDING || (tar->state == HEADER && tar->filled == 0))
                return tar->next.path || tar->next.link ? broken("it ends after an extended header") : nullptr;
        return broken("it ends inside of an entry");
}
