/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/manifest.h"

#include <string.h>

#include "base/json-member.h"
#include "base/text.h"
#include "oci/artifact.h"

enum {
        ANNOTATION_CEILING = 1024, /* maximum length of a name in an annotation */
        PLATFORMS_SHOWN = 1024,    /* maximum length of the list in a message */
};

#define OCI "application/vnd.oci.image."
#define DOCKER_IMAGE "application/vnd.docker.image.rootfs."
#define DOCKER "application/vnd.docker.distribution.manifest."

/* Docker's types without a suffix may hide a compressed layer: old tools pushed such layers. */
static const struct media_type {
        const char *name;
        enum nd_oci_media media;
        enum nd_oci_compression compression;
        bool foreign;
} media_types[] = {
        {OCI "index.v1+json", ND_MEDIA_INDEX, 0, false},
        {OCI "manifest.v1+json", ND_MEDIA_MANIFEST, 0, false},
        {OCI "config.v1+json", ND_MEDIA_CONFIG, 0, false},
        {OCI "layer.v1.tar", ND_MEDIA_LAYER, ND_COMPRESSION_NONE, false},
        {OCI "layer.v1.tar+gzip", ND_MEDIA_LAYER, ND_COMPRESSION_GZIP, false},
        {OCI "layer.v1.tar+zstd", ND_MEDIA_LAYER, ND_COMPRESSION_ZSTD, false},
        {OCI "layer.nondistributable.v1.tar", ND_MEDIA_LAYER, ND_COMPRESSION_NONE, true},
        {OCI "layer.nondistributable.v1.tar+gzip", ND_MEDIA_LAYER, ND_COMPRESSION_GZIP, true},
        {OCI "layer.nondistributable.v1.tar+zstd", ND_MEDIA_LAYER, ND_COMPRESSION_ZSTD, true},
        {DOCKER "list.v2+json", ND_MEDIA_INDEX, 0, false},
        {DOCKER "v2+json", ND_MEDIA_MANIFEST, 0, false},
        {DOCKER "v1+json", ND_MEDIA_SCHEMA1, 0, false},
        {DOCKER "v1+prettyjws", ND_MEDIA_SCHEMA1, 0, false},
        {"application/vnd.docker.container.image.v1+json", ND_MEDIA_CONFIG, 0, false},
        {DOCKER_IMAGE "diff.tar", ND_MEDIA_LAYER, ND_COMPRESSION_DETECT, false},
        {DOCKER_IMAGE "diff.tar.gzip", ND_MEDIA_LAYER, ND_COMPRESSION_GZIP, false},
        {DOCKER_IMAGE "diff.tar.zstd", ND_MEDIA_LAYER, ND_COMPRESSION_ZSTD, false},
        {DOCKER_IMAGE "foreign.diff.tar", ND_MEDIA_LAYER, ND_COMPRESSION_DETECT, true},
        {DOCKER_IMAGE "foreign.diff.tar.gzip", ND_MEDIA_LAYER, ND_COMPRESSION_GZIP, true},
};

static const struct media_type other = {.media = ND_MEDIA_OTHER};

static const struct media_type *media_type_of(const char *name) {
        size_t length = name ? strcspn(name, "; \t") : 0;

        for (size_t i = 0; i < nd_count_of(media_types); i++)
                if (strlen(media_types[i].name) == length && strncmp(media_types[i].name, name, length) == 0)
                        return &media_types[i];
        return &other;
}

enum nd_oci_media nd_oci_media_of(const char *name) {
        return media_type_of(name)->media;
}

void nd_oci_descriptor_done(struct nd_oci_descriptor *descriptor) {
        free(descriptor->media_type);
        free(descriptor->ref_name);
        free(descriptor->image_name);
        free(descriptor->file);
        *descriptor = (struct nd_oci_descriptor) {};
}

void nd_manifest_done(struct nd_manifest *manifest) {
        nd_oci_descriptor_done(&manifest->config);
        free(nd_take_ptr(manifest->artifact_type));
        nd_vector_each (entry, &manifest->entries) {
                nd_oci_descriptor_done(entry);
        }
        nd_vector_done(&manifest->entries);
}

/* A platform that is not plain text never matches, but is not a reason to refuse the other entries
 * of the index. */
static struct nd_error *parse_platform(yyjson_val *object, struct nd_oci_descriptor *ret) {
        const char *os, *architecture, *variant;
        yyjson_val *features;

        nd_try(nd_json_member_text(object, "os", ND_MEDIA_TYPE, &os));
        nd_try(nd_json_member_text(object, "architecture", ND_MEDIA_TYPE, &architecture));
        nd_try(nd_json_member_text(object, "variant", ND_MEDIA_TYPE, &variant));
        nd_try(nd_json_member_array(object, "os.features", ND_MANIFEST_DESCRIPTORS, &features));
        (void) nd_platform_make(os, architecture, variant, &ret->platform);
        ret->platform.features = yyjson_arr_size(features) > 0;
        ret->has_platform = true;
        return nullptr;
}

static char *copy_or_null(const char *text) {
        return text ? nd_strdup(text) : nullptr;
}

static struct nd_error *parse_annotations(yyjson_val *object, struct nd_oci_descriptor *ret) {
        const char *ref_name, *image_name;

        nd_try(nd_json_member_text(object, "org.opencontainers.image.ref.name", ANNOTATION_CEILING, &ref_name));
        nd_try(nd_json_member_text(object, "io.containerd.image.name", ANNOTATION_CEILING, &image_name));
        ret->ref_name = copy_or_null(ref_name);
        ret->image_name = copy_or_null(image_name);
        return nullptr;
}

static struct nd_error *parse_descriptor(yyjson_val *object, struct nd_oci_descriptor *ret) {
        nd_cleanup(nd_oci_descriptor_done) struct nd_oci_descriptor descriptor = {};
        const char *media_type, *digest;
        const struct media_type *known;
        yyjson_val *platform, *annotations;

        if (!yyjson_is_obj(object))
                return nd_error_new(ND_INVALID, 0, "it is not an object");
        nd_try(nd_json_member_text(object, "mediaType", ND_MEDIA_TYPE, &media_type));
        nd_try(nd_json_member_text(object, "digest", ND_DIGEST_TEXT, &digest));
        if (!digest)
                return nd_error_new(ND_INVALID, 0, "it has no digest");
        nd_try(nd_digest_parse(digest, &descriptor.digest));
        nd_try(nd_json_member_number(object, "size", ND_DESCRIPTOR_SIZE, &descriptor.size));
        nd_try(nd_json_member_object(object, "platform", &platform));
        if (platform)
                nd_try(nd_error_wrap(parse_platform(platform, &descriptor), "'platform'"));
        nd_try(nd_json_member_object(object, "annotations", &annotations));
        if (annotations)
                nd_try(nd_error_wrap(parse_annotations(annotations, &descriptor), "'annotations'"));

        known = media_type_of(media_type);
        descriptor.media = known->media;
        descriptor.compression = known->compression;
        descriptor.foreign = known->foreign;
        descriptor.media_type = nd_strdup(media_type ? media_type : "");
        *ret = nd_take(descriptor, (struct nd_oci_descriptor) {});
        return nullptr;
}

static struct nd_error *parse_entries(yyjson_val *array, struct nd_oci_descriptors *entries) {
        yyjson_arr_iter iterator = yyjson_arr_iter_with(array);
        yyjson_val *value;

        while ((value = yyjson_arr_iter_next(&iterator))) {
                struct nd_oci_descriptor entry = {};

                nd_try(nd_error_wrap(parse_descriptor(value, &entry), "entry %zu", entries->count));
                nd_vector_push(entries, entry);
        }
        return nullptr;
}

static struct nd_error *not_an_image(const char *what, const char *media_type) {
        nd_autofree char *quoted = nd_text_quote(media_type);

        return nd_error_new(ND_INVALID, 0, "not a container image that can be run: %s has the media type %s", what, quoted);
}

/* ---- artifacts ---- */

/* The placeholder for "no config" and "no layers". */
#define EMPTY_MEDIA_TYPE "application/vnd.oci.empty.v1+json"

/* A directory that ORAS packed. Its archive is unpacked as an image's layer is; the annotation with
 * the digest of the unpacked stream takes the place of a config's diff id. */
static struct nd_error *parse_packed_directory(yyjson_val *annotations, struct nd_oci_descriptor *layer) {
        const char *unpack, *digest;

        nd_try(nd_json_member_text(annotations, "io.deis.oras.content.unpack", ANNOTATION_CEILING, &unpack));
        nd_try(nd_json_member_text(annotations, "io.deis.oras.content.digest", ANNOTATION_CEILING, &digest));
        if (layer->media != ND_MEDIA_LAYER || !unpack || !nd_streq(unpack, "true") || !digest)
                return nullptr;
        nd_try(nd_digest_parse(digest, &layer->diff_id));
        return layer->diff_id.kind == ND_HASH_SHA256 ? nullptr : nd_error_new(ND_UNIMPLEMENTED, 0, "the digest is not sha256");
}

/* The path of a file: its title, or the path of the model specification, or else its digest. Most
 * tools give files the media type of a tar archive, so the type decides nothing. */
static struct nd_error *parse_file(yyjson_val *annotations, struct nd_oci_descriptor *layer) {
        const char *title = nullptr, *filepath = nullptr;
        char hex[ND_DIGEST_HEX];

        if (annotations) {
                nd_try(nd_json_member_text(annotations, "org.opencontainers.image.title", ND_MANIFEST_CEILING, &title));
                nd_try(nd_json_member_text(annotations, "org.cncf.model.filepath", ND_MANIFEST_CEILING, &filepath));
        }
        if (layer->digest.kind != ND_HASH_SHA256)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "files of artifacts need a sha256 digest");
        title = title ?: filepath ?: nd_digest_hex(&layer->digest, hex);
        nd_try(nd_artifact_path_check(title));
        layer->file = nd_strdup(title);
        layer->diff_id = nd_artifact_file_id(&layer->digest, title);
        return nullptr;
}

static struct nd_error *parse_artifact_layer(yyjson_val *object, struct nd_oci_descriptor *layer) {
        yyjson_val *annotations;

        nd_try(nd_json_member_object(object, "annotations", &annotations));
        if (annotations)
                nd_try(parse_packed_directory(annotations, layer));
        return nd_digest_is_set(&layer->diff_id) ? nullptr : parse_file(annotations, layer);
}

static bool is_placeholder(const struct nd_oci_descriptor *layer) {
        return nd_streq(layer->media_type, EMPTY_MEDIA_TYPE);
}

static void drop_placeholders(struct nd_oci_descriptors *layers) {
        size_t kept = 0;

        nd_vector_each (layer, layers) {
                if (is_placeholder(layer))
                        nd_oci_descriptor_done(layer);
                else
                        layers->items[kept++] = *layer;
        }
        layers->count = kept;
}

static struct nd_error *parse_artifact_layers(yyjson_val *array, struct nd_manifest *ret) {
        yyjson_arr_iter iterator = yyjson_arr_iter_with(array);
        nd_cleanup(nd_strings_done) struct nd_strings paths = {};

        for (size_t i = 0; i < ret->entries.count; i++) {
                yyjson_val *object = yyjson_arr_iter_next(&iterator);
                struct nd_oci_descriptor *layer = &ret->entries.items[i];

                if (is_placeholder(layer))
                        continue;
                nd_try(nd_error_wrap(parse_artifact_layer(object, layer), "'layers': entry %zu", i));
                if (layer->file)
                        nd_strings_add(&paths, layer->file);
        }
        drop_placeholders(&ret->entries);
        return nd_artifact_paths_check(&paths);
}

/* Whether all layers are archives. */
static bool has_image_layers(const struct nd_manifest *manifest) {
        nd_vector_each (layer, &manifest->entries) {
                if (layer->media != ND_MEDIA_LAYER)
                        return false;
        }
        return true;
}

/* The type of an artifact, nullptr for an image. A manifest that has all of an image is one, even
 * if it names an artifact's type. */
static const char *artifact_type_of(const struct nd_manifest *manifest, const char *artifact_type) {
        bool typed = artifact_type && *artifact_type;

        if (manifest->config.media == ND_MEDIA_CONFIG)
                return typed && !has_image_layers(manifest) ? artifact_type : nullptr;
        if (typed)
                return artifact_type;
        return *manifest->config.media_type ? manifest->config.media_type : nullptr;
}

static struct nd_error *parse_manifest(yyjson_val *root, struct nd_manifest *ret) {
        const char *artifact_type;
        yyjson_val *config, *layers;

        nd_try(nd_json_member_object(root, "config", &config));
        if (!config)
                return nd_error_new(ND_INVALID, 0, "the manifest has no config");
        nd_try(nd_error_wrap(parse_descriptor(config, &ret->config), "'config'"));
        nd_try(nd_json_member_text(root, "artifactType", ND_MEDIA_TYPE, &artifact_type));
        nd_try(nd_json_member_array(root, "layers", ND_MANIFEST_LAYERS, &layers));
        nd_try(nd_error_wrap(parse_entries(layers, &ret->entries), "'layers'"));
        artifact_type = artifact_type_of(ret, artifact_type);
        if (artifact_type) {
                ret->artifact_type = nd_strdup(artifact_type);
                return parse_artifact_layers(layers, ret);
        }
        if (ret->config.media != ND_MEDIA_CONFIG)
                return not_an_image("its config", ret->config.media_type);
        nd_vector_each (layer, &ret->entries) {
                if (layer->media != ND_MEDIA_LAYER)
                        return not_an_image("one of its layers", layer->media_type);
        }
        return nullptr;
}

static struct nd_error *parse_index(yyjson_val *root, struct nd_manifest *ret) {
        yyjson_val *manifests;

        nd_try(nd_json_member_array(root, "manifests", ND_MANIFEST_DESCRIPTORS, &manifests));
        return nd_error_wrap(parse_entries(manifests, &ret->entries), "'manifests'");
}

static bool has(yyjson_val *root, const char *key) {
        return yyjson_obj_get(root, key) != nullptr;
}

static const char *media_name(enum nd_oci_media media) {
        return media == ND_MEDIA_INDEX ? "an index" : "a manifest";
}

/* Determines the type of a document from the server's media type, its own and its members; all must
 * agree. */
static struct nd_error *find_media(yyjson_val *root, const char *media_type, enum nd_oci_media *ret) {
        enum nd_oci_media called = nd_oci_media_of(media_type), calls_itself, holds = ND_MEDIA_OTHER;
        const char *own;

        nd_try(nd_json_member_text(root, "mediaType", ND_MEDIA_TYPE, &own));
        calls_itself = nd_oci_media_of(own);
        if (called == ND_MEDIA_SCHEMA1 || calls_itself == ND_MEDIA_SCHEMA1 || has(root, "fsLayers"))
                return nd_error_new(ND_INVALID, 0,
                                    "the image has a Docker schema 1 manifest, an obsolete and insecure "
                                    "format; push the image again with a current tool");
        if (has(root, "manifests"))
                holds = ND_MEDIA_INDEX;
        if (has(root, "config") || has(root, "layers")) {
                if (holds == ND_MEDIA_INDEX)
                        return nd_error_new(ND_INVALID, 0, "the document is a manifest and an index at once");
                holds = ND_MEDIA_MANIFEST;
        }
        if (holds == ND_MEDIA_OTHER)
                return nd_error_new(ND_INVALID, 0, "the document is neither an image manifest nor an index");
        if ((called != ND_MEDIA_OTHER && called != holds) || (calls_itself != ND_MEDIA_OTHER && calls_itself != holds))
                return nd_error_new(ND_INVALID, 0, "the document is %s but has another media type", media_name(holds));
        *ret = holds;
        return nullptr;
}

struct nd_error *nd_manifest_parse(const char *bytes, size_t length, const char *media_type, struct nd_manifest *ret) {
        nd_cleanup(nd_manifest_done) struct nd_manifest manifest = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        nd_try(nd_json_parse(bytes, length, ND_MANIFEST_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "the manifest is not a JSON object");
        nd_try(find_media(root, media_type, &manifest.media));
        if (manifest.media == ND_MEDIA_MANIFEST)
                nd_try(parse_manifest(root, &manifest));
        else
                nd_try(parse_index(root, &manifest));
        *ret = nd_take(manifest, (struct nd_manifest) {});
        return nullptr;
}

static struct nd_error *none_suits(const struct nd_manifest *index, const struct nd_platform *wanted) {
        nd_autotext struct nd_text shown = ND_TEXT(PLATFORMS_SHOWN);
        char text[ND_PLATFORM_TEXT];

        nd_vector_each (entry, &index->entries) {
                if (entry->has_platform && !nd_streq(entry->platform.os, "unknown"))
                        nd_text_addf(&shown, "%s%s", shown.length > 0 ? ", " : "", nd_platform_text(&entry->platform, text));
        }
        return nd_error_new(ND_NOT_FOUND, 0, "no image for platform %s, only for: %s", nd_platform_text(wanted, text),
                            shown.length > 0 ? nd_text_get(&shown) : "none");
}

struct nd_error *nd_manifest_select(const struct nd_manifest *index, const struct nd_platform *wanted,
                                    const struct nd_oci_descriptor **ret) {
        const struct nd_oci_descriptor *best = nullptr, *unspecified = nullptr;
        int best_rank = -1;

        nd_vector_each (entry, &index->entries) {
                int rank;

                if (entry->media != ND_MEDIA_MANIFEST && entry->media != ND_MEDIA_INDEX)
                        continue;
                if (!entry->has_platform) {
                        unspecified = unspecified ? unspecified : entry;
                        continue;
                }
                rank = nd_platform_rank(wanted, &entry->platform);
                if (rank >= 0 && (!best || rank < best_rank)) {
                        best = entry;
                        best_rank = rank;
                }
        }
        if (!best && !unspecified)
                return none_suits(index, wanted);
        *ret = best ? best : unspecified;
        return nullptr;
}
