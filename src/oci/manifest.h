/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - image manifests and indexes, OCI's and Docker's
 *
 * A manifest names a config and layers; an index names manifests, one per platform. Docker's schema
 * 2 and manifest list are the same documents under other media types; schema 1 is refused. A
 * manifest whose config is not an image's is an artifact, whose layers are files (artifact.h).
 * Everything in them is untrusted: sizes, counts and digests are checked here. The URLs that a
 * descriptor may carry are not even parsed, so that an image cannot cause requests to other
 * hosts. */
#pragma once

#include "base/vector.h"
#include "oci/digest.h"
#include "oci/platform.h"

enum {
        ND_MANIFEST_CEILING = 4 << 20, /* maximum size of one document */
        ND_MANIFEST_DESCRIPTORS = 1000,
        ND_MANIFEST_LAYERS = 500, /* overlayfs cannot stack more */
        ND_MANIFEST_DEPTH = 3,    /* maximum nesting of indexes */
        ND_MEDIA_TYPE = 255,      /* maximum length of a media type */
};
/* Maximum size of a blob; sums of 1000 cannot overflow. */
#define ND_DESCRIPTOR_SIZE (UINT64_C(1) << 50)

enum nd_oci_media {
        ND_MEDIA_OTHER, /* unknown */
        ND_MEDIA_INDEX,
        ND_MEDIA_MANIFEST,
        ND_MEDIA_SCHEMA1,
        ND_MEDIA_CONFIG,
        ND_MEDIA_LAYER,
};

enum nd_oci_compression {
        ND_COMPRESSION_DETECT, /* not in the type: detect from the first bytes */
        ND_COMPRESSION_NONE,
        ND_COMPRESSION_GZIP,
        ND_COMPRESSION_ZSTD,
};

/* Parses a media type; parameters ("; charset=utf-8") are ignored. nullptr is ND_MEDIA_OTHER. */
enum nd_oci_media nd_oci_media_of(const char *name);

/* The Accept header of a request for a manifest. */
#define ND_MANIFEST_ACCEPT                                                                                                    \
        "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "                               \
        "application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"

/* Owns its strings. */
struct nd_oci_descriptor {
        enum nd_oci_media media;
        enum nd_oci_compression compression; /* of a layer */
        /* A layer that should not be pushed; fetched from the registry like any other. */
        bool foreign;
        bool has_platform;
        struct nd_platform platform; /* of an index's entry */
        struct nd_digest digest;
        uint64_t size;
        char *media_type;
        /* Annotation org.opencontainers.image.ref.name: a tag or a name, unchecked; nullptr =
         * none. */
        char *ref_name;
        /* Annotation io.containerd.image.name: a name, unchecked; nullptr = none. */
        char *image_name;
        /* Of an artifact's layer. */
        char *file;               /* its path, checked; nullptr = an archive */
        struct nd_digest diff_id; /* an image's config has it instead */
};
struct nd_oci_descriptors {
        struct nd_oci_descriptor *items;
        size_t count;
        size_t capacity;
};

void nd_oci_descriptor_done(struct nd_oci_descriptor *descriptor);

struct nd_manifest {
        enum nd_oci_media media;         /* ND_MEDIA_MANIFEST or ND_MEDIA_INDEX */
        struct nd_oci_descriptor config; /* of a manifest */
        char *artifact_type;             /* of an artifact, not empty; nullptr = an image */
        /* A manifest's layers, lowest first; or an index's manifests. */
        struct nd_oci_descriptors entries;
};

void nd_manifest_done(struct nd_manifest *manifest);

/* media_type is from the server or the descriptor; nullptr or a generic type ("application/json")
 * defers to the document. A document with another type of its own, or with members of the other
 * type, is refused. */
[[nodiscard]] struct nd_error *nd_manifest_parse(const char *bytes, size_t length, const char *media_type,
                                                 struct nd_manifest *ret);

/* The entry of an index that matches a platform best. Entries without a platform come last; for
 * these the caller must check the config's platform. If none matches, the ND_NOT_FOUND error lists
 * the platforms of the index. */
[[nodiscard]] struct nd_error *nd_manifest_select(const struct nd_manifest *index, const struct nd_platform *wanted,
                                                  const struct nd_oci_descriptor **ret);
