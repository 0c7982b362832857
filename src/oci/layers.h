/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - index of the unpacked layers of a store, in memory
 *
 * One small entry per layer, found by its chain id. Entries form trees by @parent: an image
 * references its topmost layer, each layer references the one below it, and an entry without
 * references is garbage. 50,000 entries take about 5 MB. */
#pragma once

#include "oci/digest.h"

struct nd_layers_entry {
        struct nd_layers_entry *parent; /* nullptr for the lowest, and while @orphan */
        uint64_t size;                  /* bytes on disk */
        uint64_t idle_since;            /* nd_clock_us() when the last reference was dropped */
        uint32_t inodes;
        uint32_t images;   /* number of images with this topmost layer */
        uint32_t children; /* number of layers on top of it */
        uint32_t shifted;  /* number of shifted copies, each as large as the layer */
        bool orphan;       /* the layer below is not known yet */
        uint8_t chain[SHA256_DIGEST_SIZE];
};

struct nd_layers {
        struct nd_layers_entry **slots; /* open addressing; a power of two of them, or nullptr */
        size_t capacity;
        size_t count;
        uint64_t seed; /* chains are untrusted: attackers must not choose the slots */
        uint64_t size; /* sums over all entries */
        uint64_t inodes;
};

void nd_layers_done(struct nd_layers *layers);
struct nd_layers_entry *nd_layers_find(const struct nd_layers *layers, const struct nd_digest *chain);

/* The entry of a chain; a new one is an orphan without a size. */
struct nd_layers_entry *nd_layers_add(struct nd_layers *layers, const struct nd_digest *chain);

/* Sets parent and size of an entry. Repeating it changes only the size. */
void nd_layers_describe(struct nd_layers *layers, struct nd_layers_entry *entry, struct nd_layers_entry *parent, uint64_t size,
                        uint64_t inodes);

/* Sets the number of shifted copies. */
void nd_layers_set_shifted(struct nd_layers *layers, struct nd_layers_entry *entry, uint32_t shifted);

/* Whether it has no references. */
static inline bool nd_layers_entry_idle(const struct nd_layers_entry *entry) {
        return entry->images == 0 && entry->children == 0;
}

/* As an image's topmost layer; nullptr is fine. */
void nd_layers_entry_hold(struct nd_layers_entry *entry);
void nd_layers_entry_release(struct nd_layers_entry *entry);

/* Frees an idle entry; returns the parent, which may be idle now. */
struct nd_layers_entry *nd_layers_remove(struct nd_layers *layers, struct nd_layers_entry *entry);

struct nd_digest nd_layers_entry_chain(const struct nd_layers_entry *entry);

/* The next entry after *position, which starts at 0; nullptr at the end. Changing the table
 * invalidates an iteration. */
struct nd_layers_entry *nd_layers_next(const struct nd_layers *layers, size_t *position);
