/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/image.h"

#include "base/json-member.h"
#include "oci/config.h"
#include "oci/layer.h"
#include "oci/manifest.h"
#include "oci/reference.h"

void nd_image_free(struct nd_image *image) {
        if (!image)
                return;
        nd_layers_entry_release(image->top);
        nd_strings_done(&image->tags);
        nd_strings_done(&image->digests);
        free(image->user);
        free(image->artifact_type);
        free(image);
}

static void copy_strings(const struct nd_strings *from, struct nd_strings *to) {
        nd_vector_each (text, from) {
                nd_strings_add(to, *text);
        }
}

struct nd_image *nd_image_copy(const struct nd_image *image) {
        struct nd_image *copy = nd_new(struct nd_image);

        *copy = *image;
        copy->tags = copy->digests = (struct nd_strings) {};
        copy_strings(&image->tags, &copy->tags);
        copy_strings(&image->digests, &copy->digests);
        copy->user = nd_strdup(image->user);
        copy->artifact_type = image->artifact_type ? nd_strdup(image->artifact_type) : nullptr;
        nd_layers_entry_hold(copy->top);
        return copy;
}

void nd_image_chains(const struct nd_image *image, struct nd_digest *ret) {
        size_t at = image->layer_count;

        for (const struct nd_layers_entry *entry = image->top; entry && at > 0; entry = entry->parent)
                ret[--at] = nd_layers_entry_chain(entry);
}

static void format_strings(struct nd_json_out *out, const char *key, const struct nd_strings *strings) {
        nd_json_open(out, key, '[');
        nd_vector_each (text, strings) {
                nd_json_string(out, nullptr, *text);
        }
        nd_json_close(out, ']');
}

/* Entries link to their parents; the record lists the lowest layer first. */
static void format_layers(struct nd_json_out *out, const struct nd_image *image) {
        nd_autofree const struct nd_layers_entry **entries = nd_calloc(image->layer_count + 1, sizeof(*entries));
        size_t count = 0;

        for (const struct nd_layers_entry *entry = image->top; entry && count < image->layer_count; entry = entry->parent)
                entries[count++] = entry;
        nd_json_open(out, "layers", '[');
        while (count > 0) {
                const struct nd_layers_entry *entry = entries[--count];
                struct nd_digest chain = nd_layers_entry_chain(entry);
                char hex[ND_DIGEST_HEX];

                nd_json_open(out, nullptr, '{');
                nd_json_string(out, "chain", nd_digest_hex(&chain, hex));
                nd_json_number(out, "size", entry->size);
                nd_json_number(out, "inodes", entry->inodes);
                nd_json_close(out, '}');
        }
        nd_json_close(out, ']');
}

struct nd_error *nd_image_format(const struct nd_image *image, struct nd_text *ret) {
        struct nd_json_out out = {.text = ret, .indent = 1};
        char digest[ND_DIGEST_TEXT];

        *ret = ND_TEXT(ND_IMAGE_CEILING);
        nd_json_open(&out, nullptr, '{');
        nd_json_number(&out, "version", ND_IMAGE_VERSION);
        nd_json_number(&out, "serial", image->serial);
        nd_json_string(&out, "id", nd_digest_text(&image->id, digest));
        nd_json_string(&out, "manifest", nd_digest_text(&image->manifest, digest));
        nd_json_string(&out, "index", nd_digest_text(&image->index, digest));
        format_strings(&out, "tags", &image->tags);
        format_strings(&out, "digests", &image->digests);
        nd_json_string(&out, "user", image->user);
        if (image->artifact_type)
                nd_json_string(&out, "artifactType", image->artifact_type);
        nd_json_number(&out, "size", image->size);
        nd_json_number(&out, "pulledAt", image->pulled_at);
        nd_json_bool(&out, "pinned", image->pinned);
        nd_layer_owner_format(&out, &image->owner);
        format_layers(&out, image);
        nd_json_close(&out, '}');
        nd_text_add(ret, "\n");
        if (ret->overflow)
                return nd_error_new(ND_EXHAUSTED, 0, "the image's record is longer than %d bytes", ND_IMAGE_CEILING);
        return nullptr;
}

static struct nd_error *parse_digest(yyjson_val *root, const char *key, bool may_be_none, struct nd_digest *ret) {
        const char *text;

        nd_try(nd_json_member_text(root, key, ND_DIGEST_TEXT, &text));
        if (may_be_none && (!text || text[0] == '\0'))
                return nullptr;
        return nd_error_wrap(nd_digest_parse(text ? text : "", ret), "'%s'", key);
}

static struct nd_error *parse_layers(yyjson_val *root, struct nd_image_layers *layers) {
        yyjson_arr_iter iterator;
        yyjson_val *array, *value;

        nd_try(nd_json_member_array(root, "layers", ND_MANIFEST_LAYERS, &array));
        iterator = yyjson_arr_iter_with(array);
        while ((value = yyjson_arr_iter_next(&iterator))) {
                struct nd_image_layer layer = {};
                const char *chain;

                if (!yyjson_is_obj(value))
                        return nd_error_new(ND_INVALID, 0, "'layers' has an entry that is not an object");
                nd_try(nd_json_member_text(value, "chain", ND_DIGEST_HEX, &chain));
                if (!chain || !nd_digest_parse_hex(chain, &layer.chain) || layer.chain.kind != ND_HASH_SHA256)
                        return nd_error_new(ND_INVALID, 0, "'layers' has an entry without a chain id");
                nd_try(nd_json_member_number(value, "size", ND_LAYER_SIZE, &layer.size));
                nd_try(nd_json_member_number(value, "inodes", ND_LAYER_SIZE, &layer.inodes));
                nd_vector_push(layers, layer);
        }
        return nullptr;
}

static struct nd_error *parse_image(yyjson_val *root, struct nd_image *image) {
        const char *user, *artifact_type;

        nd_try(nd_json_member_number(root, "serial", INT64_MAX, &image->serial));
        nd_try(parse_digest(root, "id", false, &image->id));
        nd_try(parse_digest(root, "manifest", false, &image->manifest));
        nd_try(parse_digest(root, "index", true, &image->index));
        nd_try(nd_json_member_strings(root, "tags", ND_IMAGE_NAMES, ND_REFERENCE_TEXT, &image->tags));
        nd_try(nd_json_member_strings(root, "digests", ND_IMAGE_NAMES, ND_REFERENCE_TEXT, &image->digests));
        nd_try(nd_json_member_text(root, "user", ND_CONFIG_USER, &user));
        image->user = nd_strdup(user ? user : "");
        nd_try(nd_json_member_text(root, "artifactType", ND_MEDIA_TYPE, &artifact_type));
        image->artifact_type = artifact_type ? nd_strdup(artifact_type) : nullptr;
        nd_try(nd_json_member_number(root, "size", INT64_MAX, &image->size));
        nd_try(nd_json_member_number(root, "pulledAt", INT64_MAX, &image->pulled_at));
        nd_try(nd_layer_owner_parse(root, &image->owner));
        return nd_json_member_bool(root, "pinned", &image->pinned);
}

static void layers_done(struct nd_image_layers *layers) {
        nd_vector_done(layers);
}

struct nd_error *nd_image_parse(const char *bytes, size_t length, struct nd_image **ret, struct nd_image_layers *ret_layers) {
        nd_cleanup(nd_image_done) struct nd_image *image = nd_new(struct nd_image);
        nd_cleanup(layers_done) struct nd_image_layers layers = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;
        uint64_t version;

        nd_try(nd_json_parse(bytes, length, ND_IMAGE_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "it is not a JSON object");
        nd_try(nd_json_member_number(root, "version", INT64_MAX, &version));
        if (version > ND_IMAGE_VERSION)
                return nd_error_new(ND_UNIMPLEMENTED, 0, "a newer version of nodens wrote it (format %llu)",
                                    (unsigned long long) version);
        nd_try(parse_image(root, image));
        nd_try(parse_layers(root, &layers));
        image->layer_count = layers.count;
        *ret = nd_take_ptr(image);
        *ret_layers = nd_take(layers, (struct nd_image_layers) {});
        return nullptr;
}
