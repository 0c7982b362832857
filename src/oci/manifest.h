/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - image manifests and indexes, OCI's and Docker's
 *
 * A manifest names a config and layers; an index names manifests, one per platform. Docker's schema 2 and manifest list are the
 * same documents under other media types; schema 1 is refused. Everything in them is a stranger's: sizes, counts and digests are
 * checked here, and the URLs that a descriptor may carry are not even read, so that nobody is sent anywhere by an image. */
#pragma once

#include "base/vector.h"
#include "oci/digest.h"
#include "oci/platform.h"

enum {
        ND_MANIFEST_CEILING = 4 << 20, /* bytes of one document */
        ND_MANIFEST_DESCRIPTORS = 1000,
        ND_MANIFEST_LAYERS = 500, /* also what overlayfs can stack */
        ND_MANIFEST_DEPTH = 3,    /* indexes within indexes */
        ND_MEDIA_TYPE = 255,      /* bytes of a media type's name */
};
#define ND_DESCRIPTOR_SIZE (UINT64_C(1) << 50) /* no blob is larger; sums of 1000 cannot overflow */

enum nd_oci_media {
        ND_MEDIA_OTHER, /* nothing that we know */
        ND_MEDIA_INDEX,
        ND_MEDIA_MANIFEST,
        ND_MEDIA_SCHEMA1,
        ND_MEDIA_CONFIG,
        ND_MEDIA_LAYER,
};

enum nd_oci_compression {
        ND_COMPRESSION_DETECT, /* the type leaves it open: the first bytes tell */
        ND_COMPRESSION_NONE,
        ND_COMPRESSION_GZIP,
        ND_COMPRESSION_ZSTD,
};

/* What a media type's name means; parameters ("; charset=utf-8") are not looked at. nullptr is ND_MEDIA_OTHER. */
enum nd_oci_media nd_oci_media_of(const char *name);

/* The Accept header of a request for a manifest. */
#define ND_MANIFEST_ACCEPT                                                                                                    \
        "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "                               \
        "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

/* Owns its strings. */
struct nd_oci_descriptor {
        enum nd_oci_media media;
        enum nd_oci_compression compression; /* of a layer */
        bool foreign; /* a layer that its maker asks not to push; fetched from the registry like any other */
        bool has_platform;
        struct nd_platform platform; /* of an index's entry */
        struct nd_digest digest;
        uint64_t size;
        char *media_type;
        char *ref_name;   /* annotation org.opencontainers.image.ref.name: a tag or a name, unchecked; nullptr = none */
        char *image_name; /* annotation io.containerd.image.name: a name, unchecked; nullptr = none */
};
struct nd_oci_descriptors {
        struct nd_oci_descriptor *items;
        size_t count;
        size_t capacity;
};

void nd_oci_descriptor_done(struct nd_oci_descriptor *descriptor);

struct nd_manifest {
        enum nd_oci_media media;           /* ND_MEDIA_MANIFEST or ND_MEDIA_INDEX */
        struct nd_oci_descriptor config;   /* of a manifest */
        struct nd_oci_descriptors entries; /* a manifest's layers, lowest first; or an index's manifests */
};

void nd_manifest_done(struct nd_manifest *manifest);

/* media_type is what the server or the descriptor called it; nullptr or a general type ("application/json") leaves it to
 * the document. A document that calls itself something else, or holds the other's members, is refused. */
[[nodiscard]] struct nd_error *nd_manifest_parse(const char *bytes, size_t length, const char *media_type,
                                                 struct nd_manifest *ret);

/* The entry of an index that suits a machine best. Entries without a platform come last, and whoever takes one must look at the
 * config's platform. Where none suits, ND_NOT_FOUND says which there are. */
[[nodiscard]] struct nd_error *nd_manifest_select(const struct nd_manifest *index, const struct nd_platform *wanted,
                                                  const struct nd_oci_descriptor **ret);

/* The bytes of config and layers as the registry keeps them. */
uint64_t nd_manifest_size(const struct nd_manifest *manifest);
