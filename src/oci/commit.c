/* SPDX-License-Identifier: Apache-2.0 */
/* commit.c - turns a helper's staging directory into an image
 *
 * Theory of operation
 *   The fetcher is exposed to the network: its results are an untrusted offer. Manifest, index and
 *   config are read here, hashed and parsed again; chains are computed from the config's diff ids;
 *   names go through the one parser. Blobs are written anew, so that a descriptor that the fetcher
 *   may have kept does not refer to them. A new layer is taken if the unpacker's supervisor, which
 *   parses nothing and computed the chain from the hash of the stream, has reported it (@unpacked);
 *   its directory is opened once, without links, and checked and moved through that descriptor.
 *   Both programs have exited by then.
 *   Order: blobs, layers, sync, record. If a step fails, everything before it is complete and is
 *   found by the next attempt.
 * See also   oci/store.c for the whole */
#include <string.h>

#include "oci/layer.h"
#include "oci/manifest.h"
#include "oci/reference.h"
#include "oci/store-state.h"

struct blob {
        struct nd_digest digest;
        char *bytes;
        size_t length;
};

/* An offer with everything that was read for it. */
struct commit {
        struct nd_oci_store *store;
        const struct nd_oci_store_offer *offer;
        int stage_fd;
        int blobs_fd; /* the staging directory's */
        struct blob manifest_blob, index_blob, config_blob;
        struct nd_manifest manifest;
        struct nd_oci_config config;
        struct nd_image_layers layers; /* lowest first; sizes of the new ones only */
        struct nd_strings names;       /* canonical */
};

static void commit_done(struct commit *c) {
        nd_close_fd(&c->stage_fd);
        nd_close_fd(&c->blobs_fd);
        free(c->manifest_blob.bytes);
        free(c->index_blob.bytes);
        free(c->config_blob.bytes);
        nd_manifest_done(&c->manifest);
        nd_oci_config_done(&c->config);
        nd_vector_done(&c->layers);
        nd_strings_done(&c->names);
}

/* Reads from the staging directory or, if the helper did not need to fetch it, from the store. */
static struct nd_error *read_blob(struct commit *c, const struct nd_digest *digest, struct blob *ret) {
        nd_autofree char *bytes = nullptr;
        nd_autoerror struct nd_error *error = nullptr;
        char hex[ND_DIGEST_HEX];
        size_t length;

        error = nd_file_read(c->blobs_fd, nd_digest_hex(digest, hex), ND_MANIFEST_CEILING, &bytes, &length);
        if (nd_error_errno(error) == ENOENT) {
                nd_error_done(&error);
                error = nd_oci_store_read_blob(c->store, digest, &bytes, &length);
        }
        if (error)
                return nd_take_ptr(error);
        nd_try(nd_digest_check(digest, bytes, length));
        *ret = (struct blob) {.digest = *digest, .bytes = nd_take_ptr(bytes), .length = length};
        return nullptr;
}

static struct nd_error *read_documents(struct commit *c) {
        const struct nd_oci_store_offer *offer = c->offer;

        nd_try(nd_error_wrap(read_blob(c, &offer->manifest, &c->manifest_blob), "manifest"));
        nd_try(nd_error_wrap(nd_manifest_parse(c->manifest_blob.bytes, c->manifest_blob.length, nullptr, &c->manifest),
                             "manifest"));
        if (c->manifest.media != ND_MEDIA_MANIFEST)
                return nd_error_new(ND_INVALID, 0, "an index was offered as manifest");
        if (c->manifest.artifact_type) {
                nd_oci_config_of_artifact(&c->manifest, &c->config);
                return nd_digest_equal(&offer->config, &offer->manifest)
                               ? nullptr
                               : nd_error_new(ND_INVALID, 0, "an artifact was offered as an image");
        }
        if (!nd_digest_equal(&c->manifest.config.digest, &offer->config))
                return nd_error_new(ND_INVALID, 0, "the manifest names another config than was offered");
        nd_try(nd_error_wrap(read_blob(c, &offer->config, &c->config_blob), "config"));
        nd_try(nd_oci_config_parse(c->config_blob.bytes, c->config_blob.length, &c->config));
        if (c->config.diff_ids.count != c->manifest.entries.count)
                return nd_error_new(ND_INVALID, 0, "the manifest has %zu layers and the config %zu", c->manifest.entries.count,
                                    c->config.diff_ids.count);
        return nullptr;
}

/* Whether an index leads to the manifest, directly or through nested indexes. */
static struct nd_error *index_leads(struct commit *c, const struct blob *index, int depth, bool *ret) {
        nd_cleanup(nd_manifest_done) struct nd_manifest parsed = {};

        nd_try(nd_manifest_parse(index->bytes, index->length, nullptr, &parsed));
        if (parsed.media != ND_MEDIA_INDEX)
                return nd_error_new(ND_INVALID, 0, "a manifest was offered as index");
        nd_vector_each (entry, &parsed.entries) {
                if (nd_digest_equal(&entry->digest, &c->offer->manifest))
                        *ret = true;
        }
        nd_vector_each (entry, &parsed.entries) {
                nd_autoerror struct nd_error *absent = nullptr;
                struct blob inner = {};

                if (*ret || depth == ND_MANIFEST_DEPTH || entry->media != ND_MEDIA_INDEX)
                        continue;
                absent = read_blob(c, &entry->digest, &inner);
                if (!absent)
                        /* An unreadable index leads nowhere. */
                        nd_ignore(index_leads(c, &inner, depth + 1, ret));
                free(inner.bytes);
        }
        return nullptr;
}

static struct nd_error *check_index(struct commit *c) {
        bool leads = false;

        if (!nd_digest_is_set(&c->offer->index))
                return nullptr;
        nd_try(nd_error_wrap(read_blob(c, &c->offer->index, &c->index_blob), "index"));
        nd_try(nd_error_wrap(index_leads(c, &c->index_blob, 1, &leads), "index"));
        return leads ? nullptr : nd_error_new(ND_INVALID, 0, "the index does not name the manifest that was offered");
}

static struct nd_error *check_names(struct commit *c) {
        nd_vector_each (name, c->offer->names) {
                nd_cleanup(nd_reference_done) struct nd_reference reference = {};
                nd_autofree char *text = nullptr;

                nd_try(nd_reference_parse(*name, &reference));
                if (nd_digest_is_set(&reference.digest) && !nd_digest_equal(&reference.digest, &c->offer->manifest) &&
                    !nd_digest_equal(&reference.digest, &c->offer->index))
                        return nd_error_new(ND_INVALID, 0, "the image does not match the digest in '%s'", *name);
                text = nd_reference_text(&reference);
                nd_strings_add(&c->names, text);
        }
        return nullptr;
}

static const struct nd_oci_unpacked_layer *find_unpacked(const struct nd_oci_unpacked_layers *unpacked,
                                                         const struct nd_digest *chain) {
        for (size_t i = 0; unpacked && i < unpacked->count; i++)
                if (nd_digest_equal(&unpacked->items[i].chain, chain))
                        return &unpacked->items[i];
        return nullptr;
}

static bool describes(const struct nd_layer *layer, const struct nd_digest *below, const struct nd_digest *diff_id) {
        return nd_digest_equal(&layer->diff_id, diff_id) && nd_digest_is_set(&layer->parent) == (below != nullptr) &&
               (!below || nd_digest_equal(&layer->parent, below));
}

/* Opens a new layer's directory and checks all of it through that descriptor, so that the checked
 * directory is the one moved. */
static struct nd_error *open_new_layer(struct commit *c, const struct nd_digest *below, const struct nd_digest *diff_id,
                                       struct nd_image_layer *layer, int *ret_fd) {
        nd_autoclose int fd = -EBADF, tree = -EBADF;
        nd_autofree char *path = nullptr, *bytes = nullptr;
        const struct nd_oci_unpacked_layer *said;
        struct nd_layer described;
        char hex[ND_DIGEST_HEX];
        size_t length;

        path = nd_format("unpack/layers/%s", nd_digest_hex(&layer->chain, hex));
        said = find_unpacked(c->offer->unpacked, &layer->chain);
        if (!said)
                return nd_error_new(ND_INVALID, 0, "the unpacker did not make the layer %s", hex);
        nd_try(nd_dir_open_beneath(c->stage_fd, path, &fd));
        nd_try(nd_error_wrap(nd_file_read(fd, ND_LAYER_FILE, ND_LAYER_CEILING, &bytes, &length), "'%s'", path));
        nd_try(nd_error_wrap(nd_layer_parse(bytes, length, &described), "'%s'", path));
        if (!describes(&said->layer, below, diff_id) || !describes(&described, below, diff_id))
                return nd_error_new(ND_INVALID, 0, "'%s' describes another layer", path);
        nd_try(nd_error_wrap(nd_dir_open_beneath(fd, ND_LAYER_TREE, &tree), "'%s'", path));
        layer->size = said->layer.size;
        layer->inodes = said->layer.inodes;
        *ret_fd = nd_take_fd(fd);
        return nullptr;
}

static struct nd_error *check_layers(struct commit *c) {
        struct nd_digest below = {};

        nd_vector_each (diff_id, &c->config.diff_ids) {
                const struct nd_digest *parent = c->layers.count > 0 ? &below : nullptr;
                struct nd_image_layer layer = {.chain = nd_layer_chain_of(parent, diff_id)};
                nd_autoclose int fd = -EBADF;

                if (!nd_layers_find(&c->store->layers, &layer.chain))
                        nd_try(nd_error_wrap(open_new_layer(c, parent, diff_id, &layer, &fd), "layer %zu", c->layers.count));
                nd_vector_push(&c->layers, layer);
                below = layer.chain;
        }
        return nullptr;
}

static struct nd_error *write_blob(struct nd_oci_store *store, const struct blob *blob) {
        int fd = store->blob_fds[blob->digest.kind];
        char hex[ND_DIGEST_HEX];
        struct stat st;

        if (!blob->bytes)
                return nullptr;
        (void) nd_digest_hex(&blob->digest, hex);
        if (fstatat(fd, hex, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && (size_t) st.st_size == blob->length)
                return nullptr;
        store->blob_garbage = true; /* until the record is written */
        nd_try(nd_error_wrap(nd_file_replace(fd, hex, blob->bytes, blob->length, ND_STORE_FILE_MODE), "image blob"));
        store->blob_bytes += blob->length;
        store->blob_count++;
        return nullptr;
}

/* Moves one layer into the store. A name can change between check and rename, an open directory
 * cannot: the directory at the new name is compared with the checked one, and moved out again if it
 * differs. */
static struct nd_error *take_layer(struct commit *c, size_t index, const struct nd_digest *below) {
        struct nd_image_layer *layer = &c->layers.items[index];
        nd_autofree char *path = nullptr;
        nd_autoclose int fd = -EBADF;
        struct stat looked_at, taken;
        char hex[ND_DIGEST_HEX];

        path = nd_format("unpack/layers/%s", nd_digest_hex(&layer->chain, hex));
        nd_try(open_new_layer(c, below, &c->config.diff_ids.items[index], layer, &fd));
        if (fstat(fd, &looked_at) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", path);
        nd_try(nd_file_rename(c->stage_fd, path, c->store->layers_fd, hex));
        if (fstatat(c->store->layers_fd, hex, &taken, AT_SYMLINK_NOFOLLOW) == 0 && taken.st_dev == looked_at.st_dev &&
            taken.st_ino == looked_at.st_ino)
                return nullptr;
        nd_try(nd_file_rename(c->store->layers_fd, hex, c->stage_fd, "refused"));
        return nd_error_new(ND_INVALID, 0, "'%s' was replaced during the commit", path);
}

/* Moves the new layers, each as a whole; they stay in the store even if the commit fails later. */
static struct nd_error *take_layers(struct commit *c) {
        struct nd_oci_store *store = c->store;
        struct nd_layers_entry *below = nullptr;

        for (size_t i = 0; i < c->layers.count; i++) {
                const struct nd_image_layer *layer = &c->layers.items[i];
                struct nd_layers_entry *entry = nd_layers_find(&store->layers, &layer->chain);

                if (!entry) {
                        nd_try(nd_error_wrap(take_layer(c, i, i > 0 ? &c->layers.items[i - 1].chain : nullptr),
                                             "image layer %zu", i));
                        entry = nd_layers_add(&store->layers, &layer->chain);
                        nd_layers_describe(&store->layers, entry, below, layer->size, layer->inodes);
                } else if (entry->orphan) {
                        nd_layers_describe(&store->layers, entry, below, entry->size, entry->inodes);
                }
                below = entry;
        }
        return nullptr;
}

/* A record may be on disk only if everything that it names is; this includes what a failed attempt
 * or a killed process brought in. */
static struct nd_error *sync_parts(struct nd_oci_store *store) {
        nd_try(nd_dir_sync(store->layers_fd, "layers"));
        for (enum nd_digest_kind kind = ND_HASH_SHA256; kind < nd_count_of(store->blob_fds); kind++)
                nd_try(nd_dir_sync(store->blob_fds[kind], "blobs"));
        return nullptr;
}

/* The highest owner in the image's layers, which are in the store by now; unknown if one of them
 * has no record of it. */
static void find_owner(const struct commit *c, struct nd_layer_owner *ret) {
        *ret = (struct nd_layer_owner) {};
        nd_vector_each (entry, &c->layers) {
                nd_autoerror struct nd_error *error = nullptr;
                struct nd_layer layer = {};

                error = nd_oci_store_read_layer(c->store, &entry->chain, &layer);
                if (error || !layer.owner.known)
                        return;
                nd_layer_owner_consider(ret, layer.owner.uid, layer.owner.gid, layer.owner.path);
        }
        ret->known = true;
}

/* The resulting image: the existing one with this id, if any, and the offer. */
static struct nd_error *make_image(const struct commit *c, struct nd_image **ret) {
        const struct nd_image *former = nd_oci_store_image(c->store, &c->offer->config);
        nd_cleanup(nd_image_done) struct nd_image *image = nullptr;

        if (former && (former->artifact_type != nullptr) != (c->manifest.artifact_type != nullptr))
                return nd_error_new(ND_INVALID, 0, "one document is the config of an image and the manifest of an artifact");
        if (former) {
                image = nd_image_copy(former);
        } else {
                image = nd_new(struct nd_image);
                image->id = c->offer->config;
                image->user = nd_strdup(c->config.user);
                image->artifact_type = c->manifest.artifact_type ? nd_strdup(c->manifest.artifact_type) : nullptr;
                image->layer_count = c->layers.count;
                if (c->layers.count > 0)
                        image->top = nd_layers_find(&c->store->layers, &c->layers.items[c->layers.count - 1].chain);
                nd_layers_entry_hold(image->top);
        }
        image->manifest = c->offer->manifest;
        image->index = c->offer->index;
        image->pinned |= c->offer->pinned;
        image->pulled_at = c->offer->pulled_at;
        if (!image->owner.known)
                find_owner(c, &image->owner);
        image->size = c->config_blob.length + c->manifest_blob.length + c->index_blob.length;
        for (const struct nd_layers_entry *entry = image->top; entry; entry = entry->parent)
                image->size += entry->size;
        nd_vector_each (name, &c->names) {
                nd_try(nd_oci_store_add_name(image, *name));
        }
        *ret = nd_take_ptr(image);
        return nullptr;
}

/* A failed write may still have replaced the record: a new image's is removed, an old one's settled
 * later. */
static struct nd_error *undo_record(struct nd_oci_store *store, const struct nd_image *image, struct nd_error *error) {
        struct nd_image *former = nd_oci_store_image(store, &image->id);
        char name[ND_STORE_RECORD_NAME];

        if (former)
                former->stale = true;
        else
                nd_ignore(nd_file_remove(store->images_fd, nd_oci_store_record_name(&image->id, name)));
        return error;
}

static struct nd_error *bring_in(struct commit *c, const struct nd_image **ret) {
        nd_cleanup(nd_image_done) struct nd_image *image = nullptr;
        struct nd_oci_store *store = c->store;
        struct nd_error *error;

        nd_oci_store_settle(store);
        nd_try(write_blob(store, &c->config_blob));
        nd_try(write_blob(store, &c->manifest_blob));
        nd_try(write_blob(store, &c->index_blob));
        nd_try(take_layers(c));
        nd_try(sync_parts(store));
        nd_try(make_image(c, &image));
        error = nd_oci_store_write_record(store, image);
        if (error)
                return undo_record(store, image, error);
        image->stale = false;
        *ret = image;
        nd_oci_store_adopt(store, nd_take_ptr(image));
        nd_oci_store_settle(store); /* images that lost a name */
        return nullptr;
}

struct nd_error *nd_oci_store_commit(struct nd_oci_store *store, const char *stage_id, const struct nd_oci_store_offer *offer,
                                     const struct nd_image **ret) {
        nd_cleanup(commit_done) struct commit c = {.store = store, .offer = offer, .stage_fd = -EBADF, .blobs_fd = -EBADF};

        if (!nd_strings_have(&store->stages, stage_id))
                return nd_error_new(ND_PRECONDITION, 0, "there is no staging directory '%s'", stage_id);
        nd_try(nd_dir_open_beneath(store->staging_fd, stage_id, &c.stage_fd));
        nd_try(nd_dir_open_beneath(c.stage_fd, "blobs", &c.blobs_fd));
        nd_try(read_documents(&c));
        nd_try(check_index(&c));
        nd_try(check_names(&c));
        nd_try(check_layers(&c));
        return bring_in(&c, ret);
}
