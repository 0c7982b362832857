/* SPDX-License-Identifier: Apache-2.0 */
/* shifted.c - copies of layers for the user namespaces of pods, in rootless nodes
 *
 * Theory of operation
 *   Workers make the copies and rename them when they are complete (cri/bundle/shifted-layers.c).
 *   Here they are counted, since they take as much space as the layer, and those for blocks of IDs
 *   that no pod has are removed if a layer has many. A pod exists before a copy is made for it, so
 *   a copy for a block without a pod is not in use, nor about to be.
 * See also   oci/store.c for the whole */
#include <string.h>

#include "base/text.h"
#include "oci/store-state.h"

enum {
        KEPT = 4,    /* copies of one layer without a pod */
        MOST = 4096, /* entries of a layer's directory */
};

/* Returns false for names that are not ours. */
static bool parse(const char *name, uint32_t *ret_uid) {
        nd_autofree char *copy = nd_strdup(name);
        char *rest = copy, *word = strsep(&rest, "-"), *uid = strsep(&rest, "-");
        uint32_t gid;

        return nd_streq(word, ND_SHIFTED) && uid && rest && nd_text_parse_u32(uid, ret_uid) == 0 &&
               nd_text_parse_u32(rest, &gid) == 0;
}

/* The names of a layer's copies. A directory that cannot be read has none. */
static void list(const struct nd_oci_store *store, const struct nd_layers_entry *entry, struct nd_strings *ret) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        struct nd_digest chain = nd_layers_entry_chain(entry);
        char hex[ND_DIGEST_HEX];
        uint32_t uid;

        nd_ignore(nd_dir_list(store->layers_fd, nd_digest_hex(&chain, hex), MOST, &names));
        nd_vector_each (name, &names) {
                if (parse(*name, &uid))
                        nd_strings_add(ret, *name);
        }
}

static void count(struct nd_oci_store *store, struct nd_layers_entry *entry) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};

        list(store, entry, &names);
        nd_layers_set_shifted(&store->layers, entry, (uint32_t) names.count);
}

void nd_oci_store_count_shifted(struct nd_oci_store *store, const struct nd_digest *chains, size_t chain_count) {
        struct nd_layers_entry *entry;

        for (size_t i = 0; chains && i < chain_count; i++) {
                entry = nd_layers_find(&store->layers, &chains[i]);
                if (entry)
                        count(store, entry);
        }
        for (size_t at = 0; !chains && (entry = nd_layers_next(&store->layers, &at));)
                count(store, entry);
}

struct trim {
        struct nd_oci_store *store;
        nd_oci_store_block_used used;
        void *userdata;
        char trash[ND_STORE_ID]; /* "" until the first copy is moved */
        int trash_fd;
        uint64_t bytes, inodes;
};

static struct nd_error *discard(struct trim *trim, struct nd_layers_entry *entry, const char *name) {
        struct nd_digest chain = nd_layers_entry_chain(entry);
        char hex[ND_DIGEST_HEX];
        nd_autofree char *path = nd_format("%s/%s", nd_digest_hex(&chain, hex), name), *to = nd_format("%s-%s", hex, name);

        if (trim->trash[0] == '\0')
                nd_try(nd_oci_store_make_staging(trim->store, ND_STORE_TRASH, trim->trash, &trim->trash_fd));
        nd_try(nd_file_rename(trim->store->layers_fd, path, trim->trash_fd, to));
        trim->store->moved_layers = true;
        trim->bytes += entry->size;
        trim->inodes += entry->inodes;
        nd_layers_set_shifted(&trim->store->layers, entry, entry->shifted > 0 ? entry->shifted - 1 : 0);
        return nullptr;
}

static struct nd_error *trim_layer(struct trim *trim, struct nd_layers_entry *entry) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        size_t idle = 0;
        uint32_t uid;

        list(trim->store, entry, &names);
        nd_vector_each (name, &names) {
                if (parse(*name, &uid) && !trim->used(uid, trim->userdata) && ++idle > KEPT)
                        nd_try(nd_error_wrap(discard(trim, entry, *name), "copy of an image layer"));
        }
        return nullptr;
}

struct nd_error *nd_oci_store_trim_shifted(struct nd_oci_store *store, nd_oci_store_block_used used, void *userdata) {
        struct trim trim = {.store = store, .used = used, .userdata = userdata, .trash_fd = -EBADF};
        struct nd_error *error = nullptr;
        struct nd_layers_entry *entry;

        for (size_t at = 0; !error && (entry = nd_layers_next(&store->layers, &at));)
                if (entry->shifted > KEPT)
                        error = trim_layer(&trim, entry);
        nd_close_fd(&trim.trash_fd);
        if (trim.trash[0] != '\0')
                nd_oci_store_add_trash(store, trim.trash, trim.bytes, trim.inodes);
        return error;
}
