/* SPDX-License-Identifier: Apache-2.0 */
/* collect.c - staging directories, garbage and trash
 *
 * Theory of operation
 *   Garbage is a layer that no image and no other layer holds, and that no container uses. It
 *   leaves layers/ by a rename into a trash directory, from top to bottom, so that the layers below
 *   a layer that stays stay too. The trash is handed out only after the renames are on disk:
 *   otherwise a power cut could bring back a layer whose files are partly removed.
 *   A running helper looks into layers/ and does not fetch layers that it sees there. Hence nothing
 *   is collected while there is a staging directory; after ending one, callers should collect.
 * See also   oci/store.c for the whole */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "oci/store-state.h"

enum {
        PARTIAL_SECONDS = 24 * 3600, /* how long a partial download is kept */
        PARTIAL_MOST = 4096,         /* more than the interrupted pulls of a day leave */
        TRIES = 100,
};

struct nd_error *nd_oci_store_make_staging(struct nd_oci_store *store, const char *prefix, char ret_name[static ND_STORE_ID],
                                           int *ret_fd) {
        nd_autoerror struct nd_error *error = nullptr;

        for (int i = 0; i < TRIES; i++) {
                uint64_t number;

                if (getrandom(&number, sizeof number, 0) != sizeof number)
                        return nd_error_new(ND_INTERNAL, errno, "generate a name in '%s/staging'", store->root);
                (void) snprintf(ret_name, ND_STORE_ID, "%s%016llx", prefix, (unsigned long long) number);
                if (nd_sys->mkdirat(store->staging_fd, ret_name, ND_STORE_DIRECTORY_MODE) == 0) {
                        error = nd_dir_open(store->staging_fd, ret_name, ret_fd);
                        if (error)
                                (void) nd_sys->unlinkat(store->staging_fd, ret_name, AT_REMOVEDIR);
                        return nd_take_ptr(error);
                }
                if (errno != EEXIST)
                        return nd_error_new(nd_error_code_of(errno), errno, "make directory '%s/staging/%s'", store->root,
                                            ret_name);
        }
        return nd_error_new(ND_INTERNAL, EEXIST, "make directory '%s/staging/%s'", store->root, ret_name);
}

struct nd_error *nd_oci_store_stage(struct nd_oci_store *store, char **ret_id, int *ret_fd) {
        char name[ND_STORE_ID];

        nd_try(nd_oci_store_make_staging(store, ND_STORE_PULL, name, ret_fd));
        nd_strings_add(&store->stages, name);
        *ret_id = nd_strdup(name);
        return nullptr;
}

void nd_oci_store_unstage(struct nd_oci_store *store, const char *id) {
        for (size_t i = 0; i < store->stages.count; i++)
                if (nd_streq(store->stages.items[i], id)) {
                        nd_oci_store_add_trash(store, id, 0, 0);
                        free(store->stages.items[i]);
                        store->stages.items[i] = store->stages.items[--store->stages.count];
                        return;
                }
}

/* Layers */

struct collection {
        struct nd_oci_store *store;
        uint64_t before; /* remove layers that are idle since this time or longer */
        nd_oci_store_used used;
        void *userdata;
        struct nd_oci_store_collected *result;
        char trash[ND_STORE_ID]; /* "" until the first layer is moved */
        int trash_fd;
        uint64_t inodes;
};

static bool is_garbage(const struct collection *c, const struct nd_layers_entry *entry) {
        struct nd_digest chain;

        if (!nd_layers_entry_idle(entry) || entry->idle_since > c->before)
                return false;
        chain = nd_layers_entry_chain(entry);
        return !c->used || !c->used(&chain, c->userdata);
}

/* Moves one layer out and frees its entry; returns the layer below. */
static struct nd_error *discard(struct collection *c, struct nd_layers_entry *entry, struct nd_layers_entry **ret_below) {
        struct nd_digest chain = nd_layers_entry_chain(entry);
        struct nd_oci_store *store = c->store;
        char hex[ND_DIGEST_HEX];

        if (c->trash[0] == '\0') {
                char name[ND_STORE_ID];

                nd_try(nd_oci_store_make_staging(store, ND_STORE_TRASH, name, &c->trash_fd));
                memcpy(c->trash, name, sizeof c->trash);
        }
        (void) nd_digest_hex(&chain, hex);
        nd_try(nd_error_wrap(nd_file_rename(store->layers_fd, hex, c->trash_fd, hex), "image layer"));
        store->moved_layers = true;
        c->result->layers++;
        c->result->bytes += entry->size * (1 + (uint64_t) entry->shifted);
        c->inodes += entry->inodes * (1 + (uint64_t) entry->shifted);
        *ret_below = nd_layers_remove(&store->layers, entry);
        return nullptr;
}

/* Removing changes the table, so the starting points are gathered first: they are tops, and none of
 * them is below another. */
static struct nd_error *discard_layers(struct collection *c) {
        struct nd_layers_entry *tops[ND_COLLECT_LAYERS], *entry;
        size_t count = 0;

        for (size_t at = 0; count < nd_count_of(tops) && (entry = nd_layers_next(&c->store->layers, &at));)
                if (is_garbage(c, entry))
                        tops[count++] = entry;
        for (size_t i = 0; i < count; i++)
                for (entry = tops[i]; entry && is_garbage(c, entry);) {
                        if (c->result->layers == ND_COLLECT_LAYERS) {
                                c->result->more = true;
                                return nullptr;
                        }
                        nd_try(discard(c, entry, &entry));
                }
        return nullptr;
}

/* A used layer whose parent is unknown: any other layer may be below it, so none may be removed. */
static struct nd_error *check_orphans(const struct nd_oci_store *store, nd_oci_store_used used, void *userdata) {
        const struct nd_layers_entry *entry;

        for (size_t at = 0; (entry = nd_layers_next(&store->layers, &at));) {
                struct nd_digest chain = nd_layers_entry_chain(entry);
                char hex[ND_DIGEST_HEX];

                if (entry->orphan && used && used(&chain, userdata))
                        return nd_error_new(ND_PRECONDITION, 0,
                                            "nothing is collected while a container uses the layer '%s/layers/%s', whose "
                                            "description is damaged",
                                            store->root, nd_digest_hex(&chain, hex));
        }
        return nullptr;
}

/* Blobs and partial downloads */

static int compare_digests(const void *a, const void *b) {
        return nd_digest_compare(a, b);
}

struct digests {
        struct nd_digest *items;
        size_t count;
        size_t capacity;
};

static void digests_done(struct digests *list) {
        nd_vector_done(list);
}

static void needed_blobs(const struct nd_oci_store *store, struct digests *ret) {
        nd_vector_each (image, &store->images) {
                nd_vector_push(ret, (*image)->id);
                nd_vector_push(ret, (*image)->manifest);
                nd_vector_push(ret, (*image)->index);
        }
        if (ret->count > 0)
                qsort(ret->items, ret->count, sizeof *ret->items, compare_digests);
}

static bool blob_is_needed(const struct collection *c, const struct digests *needed, const char *name) {
        struct nd_digest digest;

        if (!nd_digest_parse_hex(name, &digest))
                return !nd_has_prefix(name, ND_FILE_TEMPORARY); /* files of other origin are kept */
        return (needed->count > 0 && bsearch(&digest, needed->items, needed->count, sizeof digest, compare_digests)) ||
               (c->used && c->used(&digest, c->userdata));
}

static struct nd_error *remove_blob(struct collection *c, int fd, const char *name) {
        struct nd_oci_store *store = c->store;
        struct stat st;

        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return nullptr;
        nd_try(nd_error_wrap(nd_file_unlink(fd, name), "image blob"));
        store->blob_bytes -= (uint64_t) st.st_size < store->blob_bytes ? (uint64_t) st.st_size : store->blob_bytes;
        store->blob_count -= store->blob_count > 0;
        c->result->blobs++;
        return nullptr;
}

static struct nd_error *remove_blobs(struct collection *c) {
        nd_cleanup(digests_done) struct digests needed = {};
        struct nd_oci_store *store = c->store;

        if (!store->blob_garbage)
                return nullptr;
        needed_blobs(store, &needed);
        for (enum nd_digest_kind kind = ND_HASH_SHA256; kind < nd_count_of(store->blob_fds); kind++) {
                nd_cleanup(nd_strings_done) struct nd_strings names = {};

                nd_try(nd_dir_list_files(store->blob_fds[kind], ".", ND_STORE_RECORDS, &names));
                nd_vector_each (name, &names) {
                        if (!blob_is_needed(c, &needed, *name))
                                nd_try(remove_blob(c, store->blob_fds[kind], *name));
                }
        }
        store->blob_garbage = false;
        return nullptr;
}

/* Discards all partial downloads. No pull runs now: the next one gets the new directory. */
static struct nd_error *discard_partial(struct nd_oci_store *store) {
        nd_autoclose int trash = -EBADF;
        char name[ND_STORE_ID];
        int fd;

        nd_try(nd_oci_store_make_staging(store, ND_STORE_TRASH, name, &trash));
        nd_oci_store_add_trash(store, name, 0, 0);
        nd_try(nd_file_rename(store->staging_fd, ND_STORE_PARTIAL, trash, ND_STORE_PARTIAL));
        nd_try(nd_dir_make(store->staging_fd, ND_STORE_PARTIAL, ND_STORE_DIRECTORY_MODE));
        nd_try(nd_dir_open(store->staging_fd, ND_STORE_PARTIAL, &fd));
        nd_close_fd(&store->partial_fd);
        store->partial_fd = fd;
        return nullptr;
}

/* Fetchers of all pulls can write to this one directory. A compromised one may leave entries there
 * that a pull never makes: then the whole directory becomes trash, which a child removes. */
static struct nd_error *remove_partial(struct nd_oci_store *store) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {}, odd = {};
        nd_autoerror struct nd_error *error = nullptr;
        time_t now = time(nullptr);

        error = nd_dir_list_files(store->partial_fd, ".", PARTIAL_MOST, &names);
        if (!error)
                error = nd_dir_list(store->partial_fd, ".", 1, &odd);
        /* The list's ceiling. */
        if ((nd_error_code(error) == ND_EXHAUSTED && nd_error_errno(error) == 0) || odd.count > 0)
                return discard_partial(store);
        if (error)
                return nd_take_ptr(error);
        nd_vector_each (name, &names) {
                struct stat st;

                if (fstatat(store->partial_fd, *name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    (st.st_mtime < now - PARTIAL_SECONDS || st.st_mtime > now + PARTIAL_SECONDS))
                        nd_try(nd_error_wrap(nd_file_unlink(store->partial_fd, *name), "partial download"));
        }
        return nullptr;
}

struct nd_error *nd_oci_store_collect(struct nd_oci_store *store, uint64_t grace_us, nd_oci_store_used used, void *userdata,
                                      struct nd_oci_store_collected *ret) {
        uint64_t now = nd_clock_us();
        struct collection c = {.store = store,
                               .before = now > grace_us ? now - grace_us : 0,
                               .used = used,
                               .userdata = userdata,
                               .result = ret,
                               .trash_fd = -EBADF};
        struct nd_error *error;

        *ret = (struct nd_oci_store_collected) {.deferred = store->stages.count > 0};
        if (ret->deferred)
                return nullptr;
        nd_oci_store_settle(store);
        if (store->unreadable)
                return nd_error_new(ND_PRECONDITION, 0,
                                    "nothing is collected while the image record '%s/images/%s' cannot be read", store->root,
                                    store->unreadable);
        nd_try(check_orphans(store, used, userdata));

        error = discard_layers(&c);
        nd_close_fd(&c.trash_fd);
        if (c.trash[0] != '\0')
                nd_oci_store_add_trash(store, c.trash, ret->bytes, c.inodes);
        if (error)
                return error;
        nd_try(remove_blobs(&c));
        return remove_partial(store);
}

/* Trash */

struct nd_error *nd_oci_store_trash_take(struct nd_oci_store *store, char **ret_path) {
        *ret_path = nullptr;
        if (store->moved_layers && store->trash.count > 0) {
                nd_try(nd_dir_sync(store->layers_fd, "layers"));
                nd_try(nd_dir_sync(store->staging_fd, "staging"));
                store->moved_layers = false;
        }
        nd_vector_each (trash, &store->trash) {
                if (trash->taken)
                        continue;
                trash->taken = true;
                *ret_path = nd_format("%s/staging/%s", store->root, trash->name);
                return nullptr;
        }
        return nullptr;
}

void nd_oci_store_trash_done(struct nd_oci_store *store, const char *path, bool removed) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;

        for (size_t i = 0; i < store->trash.count; i++) {
                struct nd_oci_store_trash *trash = &store->trash.items[i];

                if (!nd_streq(trash->name, name))
                        continue;
                trash->taken = false;
                if (removed) {
                        free(trash->name);
                        *trash = store->trash.items[--store->trash.count];
                }
                return;
        }
}
