/* SPDX-License-Identifier: Apache-2.0 */
#include "pull/registry.h"

#include <string.h>

enum { DOCUMENT_SECONDS = 120 };

/* A manifest by digest or a config; the registry has them under different paths. */
static struct nd_error *registry_document(void *userdata, const struct nd_descriptor *descriptor, size_t ceiling,
                                          char **ret_bytes, size_t *ret_length) {
        const struct nd_layers_place *place = userdata;
        bool manifest = descriptor->media == ND_MEDIA_MANIFEST || descriptor->media == ND_MEDIA_INDEX;
        char text[ND_DIGEST_TEXT];
        nd_autofree char *path = nd_format("/%s/%s/%s", place->repository, manifest ? "manifests" : "blobs",
                                           nd_digest_text(&descriptor->digest, text)),
                         *content_type = nullptr;

        if (descriptor->size > ceiling)
                return nd_error_new(ND_EXHAUSTED, EFBIG, "a document of %llu bytes, more than the %zu that are allowed",
                                    (unsigned long long) descriptor->size, ceiling);
        nd_try(nd_fetch_small(place->fetcher,
                              &(struct nd_fetch_plan) {.path = path,
                                                       .repository = place->repository,
                                                       .accept = manifest ? ND_MANIFEST_ACCEPT : nullptr,
                                                       .capability = ND_HOST_PULL,
                                                       .deadline_seconds = DOCUMENT_SECONDS},
                              &descriptor->digest, ceiling, ret_bytes, ret_length, &content_type));
        if (*ret_length != descriptor->size)
                return nd_error_new(ND_DATA_LOSS, 0, "document %s has %zu bytes, its descriptor says %llu", text, *ret_length,
                                    (unsigned long long) descriptor->size);
        return nullptr;
}

/* The document that the reference names. */
static struct nd_error *resolve(const struct nd_layers_place *place, const struct nd_reference *reference, char **ret_bytes,
                                size_t *ret_length, char **ret_media_type, struct nd_digest *ret_digest) {
        bool by_digest = nd_digest_is_set(&reference->digest);
        char text[ND_DIGEST_TEXT];
        nd_autofree char *path = nd_format("/%s/manifests/%s", place->repository,
                                           by_digest ? nd_digest_text(&reference->digest, text) : reference->tag);

        nd_try(nd_fetch_small(place->fetcher,
                              &(struct nd_fetch_plan) {.path = path,
                                                       .repository = place->repository,
                                                       .accept = ND_MANIFEST_ACCEPT,
                                                       .capability = by_digest ? ND_HOST_PULL : ND_HOST_RESOLVE,
                                                       .deadline_seconds = DOCUMENT_SECONDS},
                              by_digest ? &reference->digest : nullptr, ND_MANIFEST_CEILING, ret_bytes, ret_length,
                              ret_media_type));
        *ret_digest = by_digest ? reference->digest : nd_digest_of(ND_HASH_SHA256, *ret_bytes, *ret_length);
        return nullptr;
}

static struct nd_error *pull(struct nd_layers_place *place, const struct nd_request *request, nd_images *images) {
        const struct nd_image_source source = {.document = registry_document, .userdata = place};
        nd_autofree char *bytes = nullptr, *media_type = nullptr;
        struct nd_image_top top;
        size_t length;

        nd_try(resolve(place, &request->reference, &bytes, &length, &media_type, &top.digest));
        top.bytes = bytes;
        top.length = length;
        top.media_type = *media_type ? media_type : nullptr;
        nd_event_resolved(place->events, &top.digest, media_type);
        nd_vector_push(images, (struct nd_image) {});
        if (request->reference.tag) {
                nd_autofree char *name = nd_reference_text(&request->reference);

                nd_strings_add(&images->items[0].names, name);
        }
        nd_try(nd_image_bring(place, request, &source, &top, &images->items[0]));
        return nd_images_finish(place, images);
}

struct nd_error *nd_registry_pull(struct nd_layers_place *place, const struct nd_request *request) {
        nd_cleanup(nd_images_done) nd_images images = {};
        nd_autofree char *name = nd_reference_text(&request->reference);

        return nd_error_wrap(pull(place, request, &images), "pull '%s'", name);
}
