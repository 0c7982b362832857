/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - the unpacked layers that a store has, in memory
 *
 * One small entry per layer, found by its chain id. Entries form trees by @parent: an image holds its topmost layer, each layer
 * holds the one below it, and what nobody holds is garbage. 50,000 entries take about 5 MB. */
#pragma once

#include "oci/digest.h"

struct nd_layers_entry {
        struct nd_layers_entry *parent; /* nullptr for the lowest, and while @orphan */
        uint64_t size;                  /* bytes on disk */
        uint64_t idle_since;            /* nd_clock_us() of when the last holder went */
        uint32_t inodes;
        uint32_t images;   /* whose topmost layer it is */
        uint32_t children; /* layers that lie on it */
        bool orphan;       /* nobody could tell yet what lies below */
        uint8_t chain[SHA256_DIGEST_SIZE];
};

struct nd_layers {
        struct nd_layers_entry **slots; /* open addressing; a power of two of them, or nullptr */
        size_t capacity;
        size_t count;
        uint64_t seed; /* chains come from strangers: nobody shall choose where they lie */
        uint64_t size; /* sums over all entries */
        uint64_t inodes;
};

void nd_layers_done(struct nd_layers *layers);
struct nd_layers_entry *nd_layers_find(const struct nd_layers *layers, const struct nd_digest *chain);

/* The entry of a chain; a new one is an orphan without a size. */
struct nd_layers_entry *nd_layers_add(struct nd_layers *layers, const struct nd_digest *chain);

/* Says what is known of an entry. Doing so again changes nothing but the size. */
void nd_layers_describe(struct nd_layers *layers, struct nd_layers_entry *entry, struct nd_layers_entry *parent, uint64_t size,
                        uint64_t inodes);

/* Whether nothing holds it. */
static inline bool nd_layers_entry_idle(const struct nd_layers_entry *entry) {
        return entry->images == 0 && entry->children == 0;
}

void nd_layers_entry_hold(struct nd_layers_entry *entry); /* an image's topmost layer; nullptr is fine */
void nd_layers_entry_release(struct nd_layers_entry *entry);

/* Forgets an idle entry; the parent, which may be idle now, is returned. */
struct nd_layers_entry *nd_layers_remove(struct nd_layers *layers, struct nd_layers_entry *entry);

struct nd_digest nd_layers_entry_chain(const struct nd_layers_entry *entry);

/* The next entry after *position, which starts at 0; nullptr at the end. Changing the table ends an iteration. */
struct nd_layers_entry *nd_layers_next(const struct nd_layers *layers, size_t *position);
