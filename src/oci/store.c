/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the image store: opening, lookup, names
 *
 * Theory of operation
 *   The files are the truth, memory is an index of them. An image is its record, a file in images/
 *   that is replaced as a whole. To add one (commit.c): blobs and layers first, each under its
 *   content's name, then the record. To remove one: the record first; its layers and blobs become
 *   garbage and are moved to the trash when nothing references them (collect.c). So everything that
 *   a record names exists, at every instant, and a crash leaves at most garbage.
 *   At the start only the records are read: a layer's presence is its name in layers/, listed once;
 *   its size is in the record. layer.json is read only for layers without a record. A record that
 *   is damaged, or whose layers are missing, is useless and is removed: the image will be pulled
 *   again. A record that cannot be read (an I/O error, a newer version's) is left alone, and then
 *   nothing is collected, since its layers are unknown.
 *   A name that moves from one image to another changes two files. The new owner's is written
 *   first, under a higher serial; if the old owner's cannot be written it is stale: in memory it
 *   has lost the name, and for a reader of the two files the higher serial decides. Stale records
 *   are written again before any other change.
 * Owns       everything below root, by a lock on root/lock.
 * Invariant  a layer in layers/ and a blob in blobs/ is complete and never changes; names belong to
 *            one image in memory.
 * See also   oci/commit.c, oci/collect.c, oci/layers.c, oci/image.c */
#include "oci/store.h"

#include <stdio.h>
#include <string.h>

#include "oci/layer.h"
#include "oci/manifest.h"
#include "oci/reference.h"
#include "oci/store-state.h"

enum {
        PROBLEMS_KEPT = 100,
};

void nd_oci_store_free(struct nd_oci_store *store) {
        if (!store)
                return;
        nd_vector_each (image, &store->images) {
                nd_image_free(*image);
        }
        nd_vector_done(&store->images);
        nd_vector_each (trash, &store->trash) {
                free(trash->name);
        }
        nd_vector_done(&store->trash);
        nd_map_done(&store->names);
        nd_layers_done(&store->layers);
        nd_strings_done(&store->stages);
        nd_strings_done(&store->problems);
        for (size_t i = 0; i < nd_count_of(store->blob_fds); i++)
                nd_close_fd(&store->blob_fds[i]);
        nd_close_fd(&store->partial_fd);
        nd_close_fd(&store->staging_fd);
        nd_close_fd(&store->layers_fd);
        nd_close_fd(&store->images_fd);
        nd_close_fd(&store->lock_fd);
        nd_close_fd(&store->root_fd);
        free(store->unreadable);
        free(store->root);
        free(store);
}

void nd_oci_store_problem(struct nd_oci_store *store, const char *format, ...) {
        nd_autofree char *text = nullptr;
        va_list arguments;

        if (store->problems.count == PROBLEMS_KEPT)
                return;
        va_start(arguments, format);
        text = nd_format_va(format, arguments);
        va_end(arguments);
        nd_strings_add(&store->problems, text);
}

const struct nd_strings *nd_oci_store_problems(const struct nd_oci_store *store) {
        return &store->problems;
}

const char *nd_oci_store_record_name(const struct nd_digest *id, char ret[static ND_STORE_RECORD_NAME]) {
        char hex[ND_DIGEST_HEX];

        (void) snprintf(ret, ND_STORE_RECORD_NAME, "%s.json", nd_digest_hex(id, hex));
        return ret;
}

struct nd_image *nd_oci_store_image(const struct nd_oci_store *store, const struct nd_digest *id) {
        nd_vector_each (image, &store->images) {
                if (nd_digest_equal(&(*image)->id, id))
                        return *image;
        }
        return nullptr;
}

/* Names */

static bool is_digest_name(const char *name) {
        return strchr(name, '@') != nullptr;
}

static void drop_name(struct nd_strings *names, const char *name) {
        for (size_t i = 0; i < names->count; i++)
                if (nd_streq(names->items[i], name)) {
                        free(names->items[i]);
                        names->items[i] = names->items[--names->count];
                        return;
                }
}

struct nd_error *nd_oci_store_add_name(struct nd_image *image, const char *name) {
        struct nd_strings *names = is_digest_name(name) ? &image->digests : &image->tags;

        if (nd_strings_have(names, name))
                return nullptr;
        if (names->count == ND_IMAGE_NAMES)
                return nd_error_new(ND_EXHAUSTED, 0, "the image has %d names already; remove one before adding '%s'",
                                    ND_IMAGE_NAMES, name);
        nd_strings_add(names, name);
        return nullptr;
}

static void index_names(struct nd_oci_store *store, struct nd_image *image, const struct nd_strings *names) {
        nd_vector_each (name, names) {
                struct nd_image *former = nd_map_put(&store->names, *name, image);

                if (!former || former == image)
                        continue;
                drop_name(is_digest_name(*name) ? &former->digests : &former->tags, *name);
                former->stale = true;
        }
}

static void forget_names(struct nd_oci_store *store, const struct nd_strings *names) {
        nd_vector_each (name, names) {
                (void) nd_map_remove(&store->names, *name);
        }
}

/* Removes an image from the index and frees it. */
static void forget(struct nd_oci_store *store, struct nd_image *image) {
        for (size_t i = 0; i < store->images.count; i++)
                if (store->images.items[i] == image) {
                        store->images.items[i] = store->images.items[--store->images.count];
                        break;
                }
        forget_names(store, &image->tags);
        forget_names(store, &image->digests);
        nd_image_free(image);
}

void nd_oci_store_adopt(struct nd_oci_store *store, struct nd_image *image) {
        struct nd_image *former = nd_oci_store_image(store, &image->id);

        if (former)
                forget(store, former);
        nd_vector_push(&store->images, image);
        index_names(store, image, &image->tags);
        index_names(store, image, &image->digests);
}

/* Records */

struct nd_error *nd_oci_store_write_record(struct nd_oci_store *store, struct nd_image *image) {
        char name[ND_STORE_RECORD_NAME];
        nd_autotext struct nd_text text = {};

        image->serial = ++store->serial;
        nd_try(nd_image_format(image, &text));
        return nd_error_wrap(nd_file_replace(store->images_fd, nd_oci_store_record_name(&image->id, name), text.bytes,
                                             text.length, ND_STORE_FILE_MODE),
                             "image record");
}

void nd_oci_store_settle(struct nd_oci_store *store) {
        nd_vector_each (image, &store->images) {
                nd_autoerror struct nd_error *error = nullptr;

                if (!(*image)->stale)
                        continue;
                error = nd_oci_store_write_record(store, *image);
                (*image)->stale = error != nullptr;
        }
}

/* Opening */

static struct nd_error *open_directory(int base, const char *name, int *ret_fd) {
        nd_try(nd_dir_make(base, name, ND_STORE_DIRECTORY_MODE));
        return nd_dir_open(base, name, ret_fd);
}

/* A lock of the process, not of the open file, which its children would share: a worker of a killed
 * daemon must not lock out the next one. */
static struct nd_error *take_lock(struct nd_oci_store *store) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        store->lock_fd = nd_sys->openat(store->root_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, ND_STORE_FILE_MODE);
        if (store->lock_fd < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "open '%s/lock'", store->root);
        if (fcntl(store->lock_fd, F_SETLK, &whole) < 0)
                return errno == EAGAIN || errno == EACCES
                               ? nd_error_new(ND_PRECONDITION, 0, "another process uses the image store '%s'", store->root)
                               : nd_error_new(ND_INTERNAL, errno, "lock '%s/lock'", store->root);
        return nullptr;
}

/* Image trees contain what their authors chose, setuid files included: only root may enter. */
static struct nd_error *close_to_others(struct nd_oci_store *store) {
        struct stat st;

        if (fstat(store->root_fd, &st) < 0)
                return nd_error_new(ND_INTERNAL, errno, "stat '%s'", store->root);
        if ((st.st_mode & 077) != 0 && nd_sys->fchmod(store->root_fd, ND_STORE_DIRECTORY_MODE) < 0)
                return nd_error_new(nd_error_code_of(errno), errno, "restrict access to '%s'", store->root);
        return nullptr;
}

static struct nd_error *open_directories(struct nd_oci_store *store) {
        nd_autoclose int blobs = -EBADF;

        nd_try(open_directory(AT_FDCWD, store->root, &store->root_fd));
        nd_try(close_to_others(store));
        nd_try(take_lock(store));
        nd_try(open_directory(store->root_fd, "images", &store->images_fd));
        nd_try(open_directory(store->root_fd, "layers", &store->layers_fd));
        nd_try(open_directory(store->root_fd, "staging", &store->staging_fd));
        nd_try(open_directory(store->staging_fd, ND_STORE_PARTIAL, &store->partial_fd));
        nd_try(open_directory(store->root_fd, "blobs", &blobs));
        for (enum nd_digest_kind kind = ND_HASH_SHA256; kind < nd_count_of(store->blob_fds); kind++)
                nd_try(open_directory(blobs, nd_digest_kind_name(kind), &store->blob_fds[kind]));
        nd_try(nd_dir_sync(blobs, "blobs"));
        return nd_dir_sync(store->root_fd, store->root);
}

void nd_oci_store_add_trash(struct nd_oci_store *store, const char *name, uint64_t size, uint64_t inodes) {
        nd_vector_push(&store->trash, ((struct nd_oci_store_trash) {.name = nd_strdup(name), .size = size, .inodes = inodes}));
}

/* Everything that an earlier process left in staging/ is trash, except the partial downloads. */
static struct nd_error *sweep_staging(struct nd_oci_store *store) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        nd_try(nd_dir_list(store->staging_fd, ".", ND_STORE_LAYERS, &names));
        nd_vector_each (name, &names) {
                if (!nd_streq(*name, ND_STORE_PARTIAL))
                        nd_oci_store_add_trash(store, *name, 0, 0);
        }
        /* A layer may have been moved there just before the crash. */
        store->moved_layers = names.count > 1;
        return nullptr;
}

/* Lists the layers, as yet without a size. A name that is not a chain id is not ours. */
static struct nd_error *list_layers(struct nd_oci_store *store) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        nd_try(nd_dir_list(store->layers_fd, ".", ND_STORE_LAYERS, &names));
        nd_vector_each (name, &names) {
                struct nd_digest chain;

                if (nd_digest_parse_hex(*name, &chain) && chain.kind == ND_HASH_SHA256)
                        (void) nd_layers_add(&store->layers, &chain);
                else
                        nd_oci_store_problem(store, "'%s/layers/%s' is not a layer; remove it", store->root, *name);
        }
        return nullptr;
}

static bool blob_exists(const struct nd_oci_store *store, const struct nd_digest *digest) {
        char hex[ND_DIGEST_HEX];
        struct stat st;

        return fstatat(store->blob_fds[digest->kind], nd_digest_hex(digest, hex), &st, AT_SYMLINK_NOFOLLOW) == 0 ||
               errno != ENOENT;
}

/* Whether everything that a record names exists. */
static struct nd_error *check_parts(const struct nd_oci_store *store, const struct nd_image *image,
                                    const struct nd_image_layers *layers) {
        const struct nd_digest *blobs[] = {&image->id, &image->manifest, &image->index};
        char text[ND_DIGEST_TEXT];

        for (size_t i = 0; i < nd_count_of(blobs); i++)
                if (nd_digest_is_set(blobs[i]) && !blob_exists(store, blobs[i]))
                        return nd_error_new(ND_DATA_LOSS, 0, "its blob %s is missing", nd_digest_text(blobs[i], text));
        nd_vector_each (layer, layers) {
                if (!nd_layers_find(&store->layers, &layer->chain))
                        return nd_error_new(ND_DATA_LOSS, 0, "its layer %s is missing", nd_digest_hex(&layer->chain, text));
        }
        return nullptr;
}

static void link_layers(struct nd_oci_store *store, struct nd_image *image, const struct nd_image_layers *layers) {
        struct nd_layers_entry *below = nullptr;

        nd_vector_each (layer, layers) {
                struct nd_layers_entry *entry = nd_layers_find(&store->layers, &layer->chain);

                nd_layers_describe(&store->layers, entry, below, layer->size, layer->inodes);
                below = entry;
        }
        image->top = below;
        nd_layers_entry_hold(below);
}

static void layers_done(struct nd_image_layers *layers) {
        nd_vector_done(layers);
}

/* Adds a record's image to the vector; its names are indexed later. */
static struct nd_error *parse_record(struct nd_oci_store *store, const char *name, const char *bytes, size_t length) {
        nd_cleanup(nd_image_done) struct nd_image *image = nullptr;
        nd_cleanup(layers_done) struct nd_image_layers layers = {};
        char expected[ND_STORE_RECORD_NAME];

        nd_try(nd_image_parse(bytes, length, &image, &layers));
        if (!nd_streq(nd_oci_store_record_name(&image->id, expected), name))
                return nd_error_new(ND_INVALID, 0, "it is the record of another image");
        nd_try(check_parts(store, image, &layers));
        link_layers(store, image, &layers);
        if (image->serial > store->serial)
                store->serial = image->serial;
        nd_vector_push(&store->images, nd_take_ptr(image));
        return nullptr;
}

/* From now on nothing may be collected. */
static void unreadable(struct nd_oci_store *store, const char *name, const struct nd_error *error) {
        nd_oci_store_problem(store, "image record '%s/images/%s' cannot be read, and nothing will be collected: %s",
                             store->root, name, nd_error_text(error));
        if (!store->unreadable)
                store->unreadable = nd_strdup(name);
}

static void load_record(struct nd_oci_store *store, const char *name) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *bytes = nullptr;
        size_t length;

        error = nd_file_read(store->images_fd, name, ND_IMAGE_CEILING, &bytes, &length);
        if (!error)
                error = parse_record(store, name, bytes, length);
        else if (nd_error_errno(error) == ENOENT)
                return;
        else
                return unreadable(store, name, error);
        if (!error)
                return;
        if (nd_error_code(error) == ND_UNIMPLEMENTED)
                return unreadable(store, name, error);
        nd_oci_store_problem(store, "image record '%s/images/%s' is removed, the image must be pulled again: %s", store->root,
                             name, nd_error_text(error));
        /* If that fails, the next start finds it again. */
        nd_ignore(nd_file_remove(store->images_fd, name));
        store->blob_garbage = true;
}

static int compare_serials(const void *a, const void *b) {
        const struct nd_image *first = *(struct nd_image *const *) a, *second = *(struct nd_image *const *) b;

        return (first->serial > second->serial) - (first->serial < second->serial);
}

static bool ends_with(const char *text, const char *end) {
        size_t length = strlen(text), end_length = strlen(end);

        return length >= end_length && nd_streq(text + length - end_length, end);
}

static struct nd_error *load_records(struct nd_oci_store *store) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        nd_try(nd_dir_list_files(store->images_fd, ".", ND_STORE_RECORDS, &names));
        nd_vector_each (name, &names) {
                if (nd_has_prefix(*name, ND_FILE_TEMPORARY))
                        /* It is found again at the next start. */
                        nd_ignore(nd_file_unlink(store->images_fd, *name));
                else if (ends_with(*name, ".json"))
                        load_record(store, *name);
        }

        /* Oldest first, so that the newest record gets a name. */
        if (store->images.count > 0)
                qsort(store->images.items, store->images.count, sizeof(struct nd_image *), compare_serials);
        nd_vector_each (image, &store->images) {
                index_names(store, *image, &(*image)->tags);
                index_names(store, *image, &(*image)->digests);
        }
        return nullptr;
}

struct nd_error *nd_oci_store_read_layer(const struct nd_oci_store *store, const struct nd_digest *chain,
                                         struct nd_layer *ret) {
        char path[ND_DIGEST_HEX + sizeof "/" ND_LAYER_FILE], hex[ND_DIGEST_HEX];
        nd_autofree char *bytes = nullptr;
        size_t length;

        (void) snprintf(path, sizeof path, "%s/" ND_LAYER_FILE, nd_digest_hex(chain, hex));
        nd_try(nd_file_read(store->layers_fd, path, ND_LAYER_CEILING, &bytes, &length));
        return nd_layer_parse(bytes, length, ret);
}

/* Reads layer.json of a layer without a record. */
static struct nd_error *describe_layer(struct nd_oci_store *store, struct nd_layers_entry *entry) {
        struct nd_digest chain = nd_layers_entry_chain(entry);
        struct nd_layers_entry *parent = nullptr;
        struct nd_layer layer;

        nd_try(nd_oci_store_read_layer(store, &chain, &layer));
        if (nd_digest_is_set(&layer.parent)) {
                parent = nd_layers_find(&store->layers, &layer.parent);
                if (!parent)
                        /* Still an orphan: the layer below is missing, so it cannot be used. */
                        return nullptr;
        }
        nd_layers_describe(&store->layers, entry, parent, layer.size, layer.inodes);
        return nullptr;
}

static void describe_orphans(struct nd_oci_store *store) {
        struct nd_layers_entry *entry;

        for (size_t at = 0; (entry = nd_layers_next(&store->layers, &at));) {
                nd_autoerror struct nd_error *error = entry->orphan ? describe_layer(store, entry) : nullptr;

                if (error)
                        nd_oci_store_problem(store,
                                             "a layer in '%s/layers' that no image needs has no readable description: %s",
                                             store->root, nd_error_text(error));
        }
}

static struct nd_error *count_blobs(struct nd_oci_store *store) {
        for (enum nd_digest_kind kind = ND_HASH_SHA256; kind < nd_count_of(store->blob_fds); kind++) {
                nd_cleanup(nd_strings_done) struct nd_strings names = {};

                nd_try(nd_dir_list_files(store->blob_fds[kind], ".", ND_STORE_RECORDS, &names));
                nd_vector_each (name, &names) {
                        struct stat st;

                        if (fstatat(store->blob_fds[kind], *name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                                continue;
                        store->blob_bytes += (uint64_t) st.st_size;
                        store->blob_count++;
                }
        }
        store->blob_garbage = true;
        return nullptr;
}

struct nd_error *nd_oci_store_open(const char *root, struct nd_oci_store **ret) {
        nd_cleanup(nd_oci_store_done) struct nd_oci_store *store = nd_new(struct nd_oci_store);

        store->root_fd = store->lock_fd = store->images_fd = store->layers_fd = -EBADF;
        store->staging_fd = store->partial_fd = -EBADF;
        for (size_t i = 0; i < nd_count_of(store->blob_fds); i++)
                store->blob_fds[i] = -EBADF;
        store->root = nd_strdup(root);

        nd_try(nd_error_wrap(open_directories(store), "image store"));
        nd_try(nd_error_wrap(sweep_staging(store), "image store '%s'", root));
        nd_try(nd_error_wrap(list_layers(store), "image store '%s'", root));
        nd_try(nd_error_wrap(load_records(store), "image store '%s'", root));
        nd_try(nd_error_wrap(count_blobs(store), "image store '%s'", root));
        describe_orphans(store);
        nd_oci_store_settle(store);
        *ret = nd_take_ptr(store);
        return nullptr;
}

/* Lookup */

const struct nd_image *nd_oci_store_next(const struct nd_oci_store *store, size_t *position) {
        return *position < store->images.count ? store->images.items[(*position)++] : nullptr;
}

const struct nd_image *nd_oci_store_get(const struct nd_oci_store *store, const struct nd_digest *id) {
        return nd_oci_store_image(store, id);
}

static struct nd_error *find_by_hex(const struct nd_oci_store *store, const char *text, const char *hex,
                                    const struct nd_image **ret) {
        const struct nd_image *found = nullptr;

        nd_vector_each (image, &store->images) {
                char whole[ND_DIGEST_HEX];

                if ((*image)->id.kind != ND_HASH_SHA256 || !nd_has_prefix(nd_digest_hex(&(*image)->id, whole), hex))
                        continue;
                if (found)
                        return nd_error_new(ND_INVALID, 0, "several images have an id that begins with '%s'", text);
                found = *image;
        }
        *ret = found;
        return nullptr;
}

struct nd_error *nd_oci_store_find(const struct nd_oci_store *store, const char *text, const struct nd_image **ret) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autoerror struct nd_error *no_digest = nullptr, *no_name = nullptr;
        nd_autofree char *name = nullptr;
        struct nd_digest id;
        const char *hex;

        *ret = nullptr;
        no_digest = nd_digest_parse(text, &id);
        if (!no_digest) {
                *ret = nd_oci_store_image(store, &id);
                return nullptr;
        }
        no_name = nd_reference_parse(text, &reference);
        if (!no_name) {
                name = nd_reference_text(&reference);
                *ret = nd_map_get(&store->names, name);
        }
        if (!*ret && nd_reference_is_id(text, &hex))
                return find_by_hex(store, text, hex, ret);
        return nullptr;
}

struct nd_error *nd_oci_store_read_blob(const struct nd_oci_store *store, const struct nd_digest *digest, char **ret,
                                        size_t *ret_length) {
        nd_autofree char *bytes = nullptr;
        char hex[ND_DIGEST_HEX];
        size_t length;

        nd_try(nd_error_wrap(
                nd_file_read(store->blob_fds[digest->kind], nd_digest_hex(digest, hex), ND_MANIFEST_CEILING, &bytes, &length),
                "image blob"));
        nd_try(nd_error_wrap(nd_digest_check(digest, bytes, length), "image store '%s'", store->root));
        *ret = nd_take_ptr(bytes);
        *ret_length = length;
        return nullptr;
}

struct nd_error *nd_oci_store_config(const struct nd_oci_store *store, const struct nd_image *image,
                                     struct nd_oci_config *ret) {
        nd_autofree char *bytes = nullptr;
        size_t length;

        if (image->artifact_type) {
                nd_autofree char *quoted = nd_text_quote(image->artifact_type);

                return nd_error_new(
                        ND_PRECONDITION, 0,
                        "it is an OCI artifact of the type %s, not a container image: it can be mounted as an image "
                        "volume, but a container cannot run from it",
                        quoted);
        }
        nd_try(nd_oci_store_read_blob(store, &image->id, &bytes, &length));
        return nd_oci_config_parse(bytes, length, ret);
}

struct nd_oci_store_usage nd_oci_store_usage(const struct nd_oci_store *store) {
        struct nd_oci_store_usage usage = {
                .bytes = store->layers.size + store->blob_bytes,
                .inodes = store->layers.inodes + store->blob_count,
        };

        nd_vector_each (trash, &store->trash) {
                usage.bytes += trash->size;
                usage.inodes += trash->inodes;
        }
        return usage;
}

const char *nd_oci_store_root(const struct nd_oci_store *store) {
        return store->root;
}
int nd_oci_store_layers_fd(const struct nd_oci_store *store) {
        return store->layers_fd;
}
int nd_oci_store_partial_fd(const struct nd_oci_store *store) {
        return store->partial_fd;
}

/* Changes */

static struct nd_error *not_found(const char *text) {
        nd_autofree char *quoted = nd_text_quote(text);

        return nd_error_new(ND_NOT_FOUND, 0, "there is no image %s", quoted);
}

static struct nd_error *no_such_id(const struct nd_digest *id) {
        char text[ND_DIGEST_TEXT];

        return not_found(nd_digest_text(id, text));
}

/* Writes a changed copy of an image and replaces the image; after an error the image stays, and its
 * file is settled later, since it may have either contents. */
static struct nd_error *replace(struct nd_oci_store *store, struct nd_image *image, struct nd_image *changed) {
        struct nd_error *error = nd_oci_store_write_record(store, changed);

        if (error) {
                image->stale = true;
                nd_image_free(changed);
                return error;
        }
        changed->stale = false;
        nd_oci_store_adopt(store, changed);
        nd_oci_store_settle(store);
        return nullptr;
}

struct nd_error *nd_oci_store_pin(struct nd_oci_store *store, const struct nd_digest *id, bool pinned) {
        struct nd_image *image, *changed;

        nd_oci_store_settle(store);
        image = nd_oci_store_image(store, id);
        if (!image)
                return no_such_id(id);
        if (image->pinned == pinned)
                return nullptr;
        changed = nd_image_copy(image);
        changed->pinned = pinned;
        return replace(store, image, changed);
}

/* After an error the record may still have been removed; then the image is removed, too. */
static struct nd_error *remove_image(struct nd_oci_store *store, struct nd_image *image) {
        char name[ND_STORE_RECORD_NAME];
        struct nd_error *error = nd_file_remove(store->images_fd, nd_oci_store_record_name(&image->id, name));
        struct stat st;

        if (error && fstatat(store->images_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return nd_error_wrap(error, "image record");
        forget(store, image);
        store->blob_garbage = true;
        nd_oci_store_settle(store); /* there may be space now */
        return nd_error_wrap(error, "image record");
}

struct nd_error *nd_oci_store_untag(struct nd_oci_store *store, const char *name) {
        nd_cleanup(nd_reference_done) struct nd_reference reference = {};
        nd_autofree char *text = nullptr;
        struct nd_image *image, *changed;

        nd_oci_store_settle(store);
        nd_try(nd_reference_parse(name, &reference));
        text = nd_reference_text(&reference);
        image = nd_map_get(&store->names, text);
        if (!image)
                return not_found(name);
        if (image->tags.count + image->digests.count == 1)
                return remove_image(store, image);
        changed = nd_image_copy(image);
        drop_name(is_digest_name(text) ? &changed->digests : &changed->tags, text);
        return replace(store, image, changed);
}

struct nd_error *nd_oci_store_remove(struct nd_oci_store *store, const struct nd_digest *id) {
        struct nd_image *image;

        nd_oci_store_settle(store);
        image = nd_oci_store_image(store, id);
        if (!image)
                return no_such_id(id);
        return remove_image(store, image);
}
