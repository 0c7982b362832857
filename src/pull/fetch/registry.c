/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/fetch/registry.h"

#include <string.h>

#include "pull/fetch/document.h"

static constexpr unsigned document_timeout_s = 120;

/* Fetches a manifest by digest or a config; the registry has them under different paths. */
static struct nd_error *registry_document(void *userdata, const struct nd_oci_descriptor *descriptor, size_t ceiling,
                                          char **ret_bytes, size_t *ret_length) {
        const struct pull_layers_context *context = userdata;
        bool manifest = descriptor->media == ND_MEDIA_MANIFEST || descriptor->media == ND_MEDIA_INDEX;
        char text[ND_DIGEST_TEXT];
        nd_autofree char *path = nd_format("/%s/%s/%s", context->repository, manifest ? "manifests" : "blobs",
                                           nd_digest_text(&descriptor->digest, text)),
                         *content_type = nullptr;

        if (descriptor->size > ceiling)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "document of %llu bytes exceeds the limit of %zu",
                                    (unsigned long long) descriptor->size, ceiling);
        nd_try(pull_document_fetch(context->fetcher,
                                   &(struct pull_fetch_plan) {.path = path,
                                                              .repository = context->repository,
                                                              .accept = manifest ? ND_MANIFEST_ACCEPT : nullptr,
                                                              .capability = HOST_PULL,
                                                              .deadline_seconds = document_timeout_s},
                                   &descriptor->digest, ceiling, ret_bytes, ret_length, &content_type));
        if (*ret_length != descriptor->size)
                return nd_error_new(ND_DATA_LOSS, 0, "size mismatch: document %s has %zu bytes, its descriptor %llu", text,
                                    *ret_length, (unsigned long long) descriptor->size);
        return nullptr;
}

/* Fetches the document that the reference names. */
static struct nd_error *resolve(const struct pull_layers_context *context, const struct nd_reference *reference,
                                char **ret_bytes, size_t *ret_length, char **ret_media_type, struct nd_digest *ret_digest) {
        bool by_digest = nd_digest_is_set(&reference->digest);
        char text[ND_DIGEST_TEXT];
        nd_autofree char *path = nd_format("/%s/manifests/%s", context->repository,
                                           by_digest ? nd_digest_text(&reference->digest, text) : reference->tag);

        nd_try(pull_document_fetch(context->fetcher,
                                   &(struct pull_fetch_plan) {.path = path,
                                                              .repository = context->repository,
                                                              .accept = ND_MANIFEST_ACCEPT,
                                                              .capability = by_digest ? HOST_PULL : HOST_RESOLVE,
                                                              .deadline_seconds = document_timeout_s},
                                   by_digest ? &reference->digest : nullptr, ND_MANIFEST_CEILING, ret_bytes, ret_length,
                                   ret_media_type));
        *ret_digest = by_digest ? reference->digest : nd_digest_of(ND_HASH_SHA256, *ret_bytes, *ret_length);
        return nullptr;
}

static struct nd_error *pull(struct pull_layers_context *context, const struct pull_request *request,
                             struct pull_images *images) {
        const struct pull_image_source source = {.document = registry_document, .userdata = context};
        nd_autofree char *bytes = nullptr, *media_type = nullptr;
        struct pull_image_root root;
        size_t length;

        nd_try(resolve(context, &request->reference, &bytes, &length, &media_type, &root.digest));
        root.bytes = bytes;
        root.length = length;
        root.media_type = *media_type ? media_type : nullptr;
        pull_event_resolved(context->events, &root.digest, media_type);
        nd_vector_push(images, (struct pull_image) {});
        if (request->reference.tag) {
                nd_autofree char *name = nd_reference_text(&request->reference);

                nd_strings_add(&images->items[0].names, name);
        }
        nd_try(pull_image_fetch(context, request, &source, &root, &images->items[0]));
        return pull_images_finish(context, images);
}

struct nd_error *pull_registry_pull(struct pull_layers_context *context, const struct pull_request *request) {
        nd_cleanup(pull_images_done) struct pull_images images = {};

        /* nodens-cri adds the name of the image to an error. */
        return pull(context, request, &images);
}
