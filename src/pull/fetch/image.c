/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - see image.h
 *
 * Theory of operation
 *   Documents are verified before they are parsed, parsed before they are stored, and stored as
 *   blobs/<hex>, since the daemon hashes and parses them once more. Nothing is synced meanwhile. At
 *   the end one syncfs() of the unpacker makes files, directories and renames of the whole pull
 *   durable at once. The downloads were unlinked before, so their pages need not reach the disk: a
 *   thousand files cost one flush, not a thousand. */
#include "pull/fetch/image.h"

#include <string.h>

#include "sys/file.h"

enum { DONE_LINE = 4 * 1024 * 1024 };

void pull_image_done(struct pull_image *image) {
        nd_strings_done(&image->names);
        nd_vector_done(&image->layers);
}

void pull_images_done(struct pull_images *images) {
        nd_vector_each (image, images) {
                pull_image_done(image);
        }
        nd_vector_done(images);
}

static struct nd_error *keep_document(const struct pull_layers_context *context, const struct nd_digest *digest,
                                      const char *bytes, size_t length) {
        char hex[ND_DIGEST_HEX];
        const char *path = nd_digest_hex(digest, hex);
        nd_autoclose int fd =
                nd_sys->openat(context->blobs_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

        for (size_t done = 0; fd >= 0 && done < length;) {
                ssize_t n = nd_sys->write(fd, bytes + done, length - done);

                if (n <= 0)
                        return nd_error_new(nd_error_code_of(errno), errno, "write '%s'", path);
                done += (size_t) n;
        }
        return fd < 0 ? nd_error_new(nd_error_code_of(errno), errno, "create '%s'", path) : nullptr;
}

/* Descends from an index to a manifest, at most ND_MANIFEST_DEPTH indexes deep. */
static struct nd_error *find_manifest(struct pull_layers_context *context, const struct pull_request *request,
                                      const struct pull_image_source *source, const struct pull_image_root *root,
                                      struct pull_image *image, struct nd_manifest *ret) {
        nd_cleanup(nd_manifest_done) struct nd_manifest document = {};
        struct nd_digest digest = root->digest;

        nd_try(nd_manifest_parse(root->bytes, root->length, root->media_type, &document));
        nd_try(keep_document(context, &digest, root->bytes, root->length));
        for (unsigned depth = 0; document.media == ND_MEDIA_INDEX; depth++) {
                nd_cleanup(nd_manifest_done) struct nd_manifest next = {};
                const struct nd_oci_descriptor *chosen;
                nd_autofree char *bytes = nullptr;
                size_t length;

                if (depth == ND_MANIFEST_DEPTH)
                        return nd_error_new(ND_INVALID, 0, "image indexes nested more than %d levels deep", ND_MANIFEST_DEPTH);
                if (!nd_digest_is_set(&image->index))
                        image->index = digest;
                nd_try(nd_manifest_select(&document, &request->platform, &chosen));
                nd_try(source->document(source->userdata, chosen, ND_MANIFEST_CEILING, &bytes, &length));
                nd_try(nd_manifest_parse(bytes, length, chosen->media_type, &next));
                digest = chosen->digest;
                nd_try(keep_document(context, &digest, bytes, length));
                nd_manifest_done(&document);
                document = nd_take(next, (struct nd_manifest) {});
        }
        image->manifest = digest;
        *ret = nd_take(document, (struct nd_manifest) {});
        return nullptr;
}

static struct nd_error *check_manifest(const struct nd_manifest *manifest, const struct pull_request *request) {
        if (manifest->entries.count > request->layers)
                return nd_error_new(ND_EXHAUSTED, 0, "the %s has %zu layers, more than the limit of %u",
                                    manifest->artifact_type ? "artifact" : "image", manifest->entries.count, request->layers);
        return nullptr;
}

static struct nd_error *read_config(struct pull_layers_context *context, const struct pull_request *request,
                                    const struct pull_image_source *source, const struct nd_manifest *manifest,
                                    struct nd_oci_config *ret) {
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};
        char wanted[ND_PLATFORM_TEXT], found[ND_PLATFORM_TEXT];
        nd_autofree char *bytes = nullptr;
        size_t length;

        nd_try(source->document(source->userdata, &manifest->config, ND_CONFIG_CEILING, &bytes, &length));
        nd_try(nd_oci_config_parse(bytes, length, &config));
        if (config.diff_ids.count != manifest->entries.count)
                return nd_error_new(ND_INVALID, 0, "the image's config lists %zu layers, its manifest %zu",
                                    config.diff_ids.count, manifest->entries.count);
        if (*config.platform.architecture && nd_platform_rank(&request->platform, &config.platform) < 0)
                return nd_error_new(ND_NOT_FOUND, 0, "the image is for platform %s, this node is %s",
                                    nd_platform_text(&config.platform, found), nd_platform_text(&request->platform, wanted));
        nd_try(keep_document(context, &manifest->config.digest, bytes, length));
        *ret = nd_take(config, (struct nd_oci_config) {});
        return nullptr;
}

struct nd_error *pull_image_fetch(struct pull_layers_context *context, const struct pull_request *request,
                                  const struct pull_image_source *source, const struct pull_image_root *root,
                                  struct pull_image *image) {
        nd_cleanup(nd_manifest_done) struct nd_manifest manifest = {};
        nd_cleanup(nd_oci_config_done) struct nd_oci_config config = {};

        nd_try(find_manifest(context, request, source, root, image, &manifest));
        nd_try(check_manifest(&manifest, request));
        if (manifest.artifact_type) {
                nd_oci_config_of_artifact(&manifest, &config);
                image->config = image->manifest;
        } else {
                nd_try(read_config(context, request, source, &manifest, &config));
                image->config = manifest.config.digest;
                image->config_size = manifest.config.size;
        }
        return pull_layers_run(context, &manifest, &config, &image->layers);
}

static void put_digest(struct nd_json_out *out, const char *key, const struct nd_digest *digest) {
        char text[ND_DIGEST_TEXT];

        nd_json_string(out, key, nd_digest_text(digest, text));
}

static void put_image(struct nd_json_out *out, const struct pull_image *image) {
        nd_json_open(out, nullptr, '{');
        put_digest(out, "manifestDigest", &image->manifest);
        put_digest(out, "indexDigest", &image->index);
        put_digest(out, "configDigest", &image->config);
        nd_json_number(out, "configSize", image->config_size);
        nd_json_open(out, "names", '[');
        nd_vector_each (name, &image->names) {
                nd_json_string(out, nullptr, *name);
        }
        nd_json_close(out, ']');
        nd_json_open(out, "layers", '[');
        nd_vector_each (layer, &image->layers) {
                nd_json_open(out, nullptr, '{');
                put_digest(out, "diffId", &layer->diff_id);
                put_digest(out, "chain", &layer->chain);
                nd_json_number(out, "size", layer->size);
                nd_json_number(out, "inodes", layer->inodes);
                nd_json_bool(out, "new", layer->is_new);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
        nd_json_close(out, '}');
}

struct nd_error *pull_images_finish(const struct pull_layers_context *context, const struct pull_images *images) {
        nd_autotext struct nd_text line = ND_TEXT(DONE_LINE);
        struct nd_json_out out = {.text = &line};

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "event", "done");
        nd_json_open(&out, "images", '[');
        nd_vector_each (image, images) {
                put_image(&out, image);
        }
        nd_json_close(&out, ']');
        nd_json_close(&out, '}');
        if (line.overflow)
                return nd_error_new(ND_EXHAUSTED, 0, "too many images in one archive");
        nd_try(pull_unpack_client_finish(context->unpacker));
        pull_event_line(context->events, &line);
        return nullptr;
}
