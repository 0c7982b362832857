/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - see import.h
 *
 * Theory of operation
 *   The index can be anywhere in an archive, so it is read once as a stream: files under
 *   blobs/sha256 are written to archive-<hex> of the pull's blobs and hashed meanwhile (a blob
 *   without the digest of its name fails the import); index.json is kept in memory. Then the images
 *   are processed as from a registry, with files instead of requests. Names in the archive become
 *   file names only after they were parsed as a digest. */
#include "pull/fetch/import.h"

#include <string.h>

#include "pull/archive/decompress.h"
#include "pull/archive/tar.h"
#include "sys/file.h"

enum {
        INPUT = 256 * 1024,
        BLOBS = 20000,
        IMAGES = 1000,
};

struct archive {
        struct pull_layers_context *context;
        uint64_t left; /* remaining limit for its blobs */
        size_t blobs;
        bool is_tar; /* it has an entry */
        int file;    /* the blob being written */
        struct nd_digest digest;
        struct nd_digest_hash hash;
        bool in_index;
        struct nd_text index;
        bool docker; /* it has manifest.json, as from `docker save` */
};

static void archive_done(struct archive *a) {
        nd_close_fd(&a->file);
        nd_text_done(&a->index);
}

static struct nd_error *archive_entry(void *userdata, const struct pull_tar_entry *entry) {
        struct archive *a = userdata;
        const char *path = nd_has_prefix(entry->path, "./") ? entry->path + 2 : entry->path;
        nd_autofree char *name = nullptr;
        char hex[ND_DIGEST_HEX];

        a->is_tar = true;
        if (entry->kind != TAR_FILE)
                return nullptr;
        a->in_index = nd_streq(path, "index.json");
        if (a->in_index)
                a->index.length = 0;
        a->docker = a->docker || nd_streq(path, "manifest.json");
        if (!nd_has_prefix(path, "blobs/sha256/") || !nd_digest_parse_hex(path + strlen("blobs/sha256/"), &a->digest) ||
            a->digest.kind != ND_HASH_SHA256)
                return nullptr;
        if (++a->blobs > BLOBS || entry->size > a->left)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "the archive exceeds the size limit");
        a->left -= entry->size;
        name = nd_format("archive-%s", nd_digest_hex(&a->digest, hex));
        a->file = nd_sys->openat(a->context->blobs_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (a->file < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "create '%s'", name);
        nd_digest_hash_start(ND_HASH_SHA256, &a->hash);
        return nullptr;
}

static struct nd_error *archive_data(void *userdata, const char *bytes, size_t length) {
        struct archive *a = userdata;

        if (a->in_index) {
                nd_text_append(&a->index, bytes, length);
                return a->index.overflow ? nd_error_new(ND_EXHAUSTED, EFBIG, "the archive's index.json is too large")
                                         : nullptr;
        }
        if (a->file < 0)
                return nullptr;
        nd_digest_hash_add(&a->hash, bytes, length);
        while (length > 0) {
                ssize_t n = nd_sys->write(a->file, bytes, length);

                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write a blob of the archive");
                bytes += n;
                length -= (size_t) n;
        }
        return nullptr;
}

static struct nd_error *archive_end(void *userdata) {
        struct archive *a = userdata;
        struct nd_digest digest;
        char text[ND_DIGEST_TEXT];

        if (a->file < 0)
                return nullptr;
        nd_close_fd(&a->file);
        digest = nd_digest_hash_finish(&a->hash);
        if (nd_digest_equal(&digest, &a->digest))
                return nullptr;
        return nd_error_new(ND_DATA_LOSS, 0, "digest mismatch: blob %s of the archive", nd_digest_text(&a->digest, text));
}

static struct nd_error *feed_tar(void *userdata, const char *bytes, size_t length) {
        return pull_tar_feed(userdata, bytes, length);
}

static struct nd_error *read_archive(struct archive *a, int fd) {
        nd_cleanup(pull_tar_done) struct pull_tar *tar = pull_tar_new(
                &(struct pull_tar_sink) {.entry = archive_entry, .data = archive_data, .end = archive_end, .userdata = a});
        nd_cleanup(pull_decompressor_done) struct pull_decompressor *inflate =
                pull_decompressor_new(ND_COMPRESSION_DETECT, UINT64_MAX / 2, feed_tar, tar);
        static char input[INPUT];

        for (;;) {
                ssize_t n = read(fd, input, sizeof input);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "read the archive");
                if (n == 0)
                        break;
                nd_try(pull_decompressor_feed(inflate, input, (size_t) n));
        }
        nd_try(pull_decompressor_finish(inflate));
        return pull_tar_finish(tar);
}

static struct nd_error *archive_document(void *userdata, const struct nd_oci_descriptor *descriptor, size_t ceiling,
                                         char **ret_bytes, size_t *ret_length) {
        const struct pull_layers_context *context = userdata;
        char hex[ND_DIGEST_HEX], text[ND_DIGEST_TEXT];
        nd_autofree char *name = nd_format("archive-%s", nd_digest_hex(&descriptor->digest, hex));
        nd_autofree char *bytes = nullptr;
        size_t length;

        (void) nd_digest_text(&descriptor->digest, text);
        nd_try(nd_error_wrap(nd_file_read(context->blobs_fd, name, ceiling, &bytes, &length), "document %s of the archive",
                             text));
        nd_try(nd_digest_check(&descriptor->digest, bytes, length));
        if (length != descriptor->size)
                return nd_error_new(ND_DATA_LOSS, 0, "the size of document %s in the archive differs from its descriptor",
                                    text);
        *ret_bytes = nd_take_ptr(bytes);
        *ret_length = length;
        return nullptr;
}

/* Takes the names of an entry of index.json: containerd's annotation, or a full name in OCI's. */
static void take_names(const struct nd_oci_descriptor *entry, struct nd_strings *names) {
        const char *const given[] = {entry->image_name, entry->ref_name};

        for (size_t i = 0; i < nd_count_of(given) && names->count == 0; i++) {
                nd_cleanup(nd_reference_done) struct nd_reference reference = {};
                nd_autoerror struct nd_error *error = nullptr;
                nd_autofree char *text = nullptr;

                if (!given[i] || (i == 1 && !strchr(given[i], '/'))) /* a bare tag is not a name */
                        continue;
                error = nd_reference_parse(given[i], &reference);
                if (error || !reference.tag)
                        continue;
                text = nd_reference_text(&reference);
                nd_strings_add(names, text);
        }
}

static struct nd_error *import_entry(struct pull_layers_context *context, const struct pull_request *request,
                                     const struct nd_oci_descriptor *entry, struct pull_image *image) {
        const struct pull_image_source source = {.document = archive_document, .userdata = context};
        nd_autofree char *bytes = nullptr;
        size_t length = 0;

        nd_try(archive_document(context, entry, ND_MANIFEST_CEILING, &bytes, &length));
        pull_event_resolved(context->events, &entry->digest, entry->media_type);
        take_names(entry, &image->names);
        return pull_image_fetch(
                context, request, &source,
                &(struct pull_image_root) {
                        .bytes = bytes, .length = length, .media_type = entry->media_type, .digest = entry->digest},
                image);
}

static struct nd_error *import_images(struct pull_layers_context *context, const struct pull_request *request,
                                      const struct archive *a, struct pull_images *images) {
        nd_cleanup(nd_manifest_done) struct nd_manifest index = {};

        if (a->index.length == 0)
                return nd_error_new(ND_INVALID, 0,
                                    a->docker ? "the archive is in Docker's legacy format; save it as an OCI archive"
                                              : "the archive is not an OCI image layout: no index.json");
        nd_try(nd_error_wrap(nd_manifest_parse(a->index.bytes, a->index.length, nullptr, &index),
                             "index.json of the archive"));
        if (index.media != ND_MEDIA_INDEX || index.entries.count > IMAGES)
                return nd_error_new(ND_INVALID, 0,
                                    "index.json of the archive is not an image index, or lists more than %d images", IMAGES);
        nd_vector_each (entry, &index.entries) {
                nd_autoerror struct nd_error *error = nullptr;

                nd_vector_push(images, (struct pull_image) {});
                error = import_entry(context, request, entry, &images->items[images->count - 1]);
                /* An image for other platforms is skipped if there is another that fits. */
                if (nd_error_code(error) == ND_NOT_FOUND && index.entries.count > 1)
                        pull_image_done(&images->items[--images->count]);
                else if (error)
                        return nd_take_ptr(error);
        }
        if (images->count == 0)
                return nd_error_new(ND_NOT_FOUND, 0, "the archive has no image for this platform");
        return nullptr;
}

struct nd_error *pull_import(struct pull_layers_context *context, const struct pull_request *request, int archive_fd) {
        nd_cleanup(archive_done) struct archive a = {
                .context = context, .left = request->total_bytes, .file = -EBADF, .index = ND_TEXT(ND_MANIFEST_CEILING)};
        nd_cleanup(pull_images_done) struct pull_images images = {};
        nd_autoerror struct nd_error *error = nullptr;

        error = read_archive(&a, archive_fd);
        if (!a.is_tar && (!error || nd_error_code(error) == ND_INVALID))
                return nd_error_new(ND_INVALID, 0, "not a tar archive; an import needs an OCI image layout as a tar archive");
        nd_try(nd_take_ptr(error));
        nd_try(import_images(context, request, &a, &images));
        return pull_images_finish(context, &images);
}
