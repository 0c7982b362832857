/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/layer.h"

#include <string.h>

#include "base/json-member.h"

struct nd_digest nd_layer_chain_of(const struct nd_digest *below, const struct nd_digest *diff_id) {
        char text[ND_DIGEST_TEXT];
        struct nd_digest_hash hash;

        if (!below)
                return *diff_id;
        nd_digest_hash_start(ND_HASH_SHA256, &hash);
        (void) nd_digest_text(below, text);
        nd_digest_hash_add(&hash, text, strlen(text));
        nd_digest_hash_add(&hash, " ", 1);
        (void) nd_digest_text(diff_id, text);
        nd_digest_hash_add(&hash, text, strlen(text));
        return nd_digest_hash_finish(&hash);
}

void nd_layer_owner_consider(struct nd_layer_owner *owner, uint32_t uid, uint32_t gid, const char *path) {
        uint32_t highest = uid > gid ? uid : gid, recorded = owner->uid > owner->gid ? owner->uid : owner->gid;
        nd_autotext struct nd_text clean = ND_TEXT(ND_LAYER_OWNER_PATH);

        if (highest < ND_LAYER_IDS || (owner->path[0] && highest <= recorded) || strlen(path) >= sizeof owner->path)
                return;
        nd_text_add_utf8(&clean, path, strlen(path));
        if (!nd_streq(nd_text_get(&clean), path))
                return;
        owner->uid = uid;
        owner->gid = gid;
        memcpy(owner->path, path, strlen(path) + 1);
}

bool nd_layer_owner_is_outside(const struct nd_layer_owner *owner, uint64_t uids, uint64_t gids) {
        return owner->path[0] && (owner->uid >= uids || owner->gid >= gids);
}

void nd_layer_owner_format(struct nd_json_out *out, const struct nd_layer_owner *owner) {
        if (!owner->known)
                return;
        nd_json_open(out, "owner", '{');
        if (owner->path[0]) {
                nd_json_string(out, "path", owner->path);
                nd_json_number(out, "uid", owner->uid);
                nd_json_number(out, "gid", owner->gid);
        }
        nd_json_close(out, '}');
}

struct nd_error *nd_layer_owner_parse(yyjson_val *record, struct nd_layer_owner *ret) {
        yyjson_val *object;
        const char *path;
        uint64_t uid, gid;

        nd_try(nd_json_member_object(record, "owner", &object));
        if (!object)
                return nullptr;
        nd_try(nd_json_member_text(object, "path", ND_LAYER_OWNER_PATH - 1, &path));
        nd_try(nd_json_member_number(object, "uid", UINT32_MAX, &uid));
        nd_try(nd_json_member_number(object, "gid", UINT32_MAX, &gid));
        ret->known = true;
        if (path)
                nd_layer_owner_consider(ret, (uint32_t) uid, (uint32_t) gid, path);
        return nullptr;
}

char *nd_layer_format(const struct nd_layer *layer) {
        struct nd_text text = ND_TEXT(ND_LAYER_CEILING);
        struct nd_json_out out = {.text = &text};
        char digest[ND_DIGEST_TEXT];

        nd_json_open(&out, nullptr, '{');
        nd_json_string(&out, "diffId", nd_digest_text(&layer->diff_id, digest));
        nd_json_string(&out, "parent", nd_digest_hex(&layer->parent, digest));
        nd_json_number(&out, "size", layer->size);
        nd_json_number(&out, "inodes", layer->inodes);
        nd_layer_owner_format(&out, &layer->owner);
        nd_json_close(&out, '}');
        nd_text_add(&text, "\n");
        return nd_text_steal(&text);
}

struct nd_error *nd_layer_parse(const char *bytes, size_t length, struct nd_layer *ret) {
        const char *diff_id, *parent;
        struct nd_layer layer = {};
        nd_autojson yyjson_doc *doc = nullptr;
        yyjson_val *root;

        nd_try(nd_json_parse(bytes, length, ND_LAYER_CEILING, &doc));
        root = yyjson_doc_get_root(doc);
        if (!yyjson_is_obj(root))
                return nd_error_new(ND_INVALID, 0, "it is not a JSON object");
        nd_try(nd_json_member_text(root, "diffId", ND_DIGEST_TEXT, &diff_id));
        nd_try(nd_digest_parse(diff_id ? diff_id : "", &layer.diff_id));
        nd_try(nd_json_member_text(root, "parent", ND_DIGEST_HEX, &parent));
        if (parent && parent[0] != '\0' && !nd_digest_parse_hex(parent, &layer.parent))
                return nd_error_new(ND_INVALID, 0, "'parent' is not a chain id");
        nd_try(nd_json_member_number(root, "size", ND_LAYER_SIZE, &layer.size));
        nd_try(nd_json_member_number(root, "inodes", ND_LAYER_SIZE, &layer.inodes));
        nd_try(nd_layer_owner_parse(root, &layer.owner));
        *ret = layer;
        return nullptr;
}
