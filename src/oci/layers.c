/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/layers.h"

#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/clock.h"

enum {
        CAPACITY_FIRST = 64,
};

void nd_layers_done(struct nd_layers *layers) {
        for (size_t i = 0; i < layers->capacity; i++)
                free(layers->slots[i]);
        free(layers->slots);
        *layers = (struct nd_layers) {};
}

/* Where the probing for a chain begins. Chains are uniform already; the seed keeps attackers from
 * predicting the slot. */
static size_t home_of(const struct nd_layers *layers, const uint8_t chain[static SHA256_DIGEST_SIZE]) {
        uint64_t words[SHA256_DIGEST_SIZE / sizeof(uint64_t)], hash = layers->seed;

        memcpy(words, chain, sizeof words);
        for (size_t i = 0; i < nd_count_of(words); i++) {
                hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
                hash ^= hash >> 32;
        }
        return (size_t) hash & (layers->capacity - 1);
}

/* The slot that has the chain or else the free one where it belongs. */
static size_t slot_of(const struct nd_layers *layers, const uint8_t chain[static SHA256_DIGEST_SIZE]) {
        size_t at = home_of(layers, chain);

        while (layers->slots[at] && memcmp(layers->slots[at]->chain, chain, SHA256_DIGEST_SIZE) != 0)
                at = (at + 1) & (layers->capacity - 1);
        return at;
}

struct nd_layers_entry *nd_layers_find(const struct nd_layers *layers, const struct nd_digest *chain) {
        if (layers->count == 0 || chain->kind != ND_HASH_SHA256)
                return nullptr;
        return layers->slots[slot_of(layers, chain->bytes)];
}

static void grow(struct nd_layers *layers) {
        struct nd_layers larger = *layers;

        larger.capacity = layers->capacity > 0 ? layers->capacity * 2 : CAPACITY_FIRST;
        larger.slots = nd_calloc(larger.capacity, sizeof *larger.slots);
        if (layers->capacity == 0 && getrandom(&larger.seed, sizeof larger.seed, 0) != sizeof larger.seed)
                /* The entropy pool is not ready; a guess is better than a constant. */
                larger.seed = nd_clock_ns();
        for (size_t i = 0; i < layers->capacity; i++)
                if (layers->slots[i])
                        larger.slots[slot_of(&larger, layers->slots[i]->chain)] = layers->slots[i];
        free(layers->slots);
        *layers = larger;
}

struct nd_layers_entry *nd_layers_add(struct nd_layers *layers, const struct nd_digest *chain) {
        struct nd_layers_entry *entry = nd_layers_find(layers, chain);

        if (entry)
                return entry;
        if (layers->count * 2 >= layers->capacity)
                grow(layers);
        entry = nd_new(struct nd_layers_entry);
        memcpy(entry->chain, chain->bytes, sizeof entry->chain);
        entry->orphan = true;
        entry->idle_since = nd_clock_us();
        layers->slots[slot_of(layers, entry->chain)] = entry;
        layers->count++;
        return entry;
}

void nd_layers_describe(struct nd_layers *layers, struct nd_layers_entry *entry, struct nd_layers_entry *parent, uint64_t size,
                        uint64_t inodes) {
        uint32_t held = inodes < UINT32_MAX ? (uint32_t) inodes : UINT32_MAX;

        layers->size += (size - entry->size) * (1 + (uint64_t) entry->shifted);
        layers->inodes += ((uint64_t) held - entry->inodes) * (1 + (uint64_t) entry->shifted);
        entry->size = size;
        entry->inodes = held;
        if (!entry->orphan)
                return;
        entry->orphan = false;
        entry->parent = parent;
        if (parent)
                parent->children++;
}

void nd_layers_set_shifted(struct nd_layers *layers, struct nd_layers_entry *entry, uint32_t shifted) {
        layers->size += entry->size * ((uint64_t) shifted - entry->shifted);
        layers->inodes += entry->inodes * ((uint64_t) shifted - entry->shifted);
        entry->shifted = shifted;
}

void nd_layers_entry_hold(struct nd_layers_entry *entry) {
        if (entry)
                entry->images++;
}

void nd_layers_entry_release(struct nd_layers_entry *entry) {
        uint64_t now = nd_clock_us();

        if (!entry || --entry->images > 0)
                return;
        for (; entry; entry = entry->parent) /* the layers below were in use until now as well */
                entry->idle_since = now;
}

/* Empties a slot and moves back later entries that had probed past it. */
static void vacate(struct nd_layers *layers, size_t hole) {
        size_t mask = layers->capacity - 1;

        for (size_t at = (hole + 1) & mask; layers->slots[at]; at = (at + 1) & mask) {
                size_t home = home_of(layers, layers->slots[at]->chain);

                if (((at - home) & mask) < ((at - hole) & mask))
                        continue;
                layers->slots[hole] = layers->slots[at];
                hole = at;
        }
        layers->slots[hole] = nullptr;
}

struct nd_layers_entry *nd_layers_remove(struct nd_layers *layers, struct nd_layers_entry *entry) {
        struct nd_layers_entry *parent = entry->parent;

        layers->size -= entry->size * (1 + (uint64_t) entry->shifted);
        layers->inodes -= entry->inodes * (1 + (uint64_t) entry->shifted);
        if (parent) {
                nd_assert(parent->children > 0);
                parent->children--;
        }
        vacate(layers, slot_of(layers, entry->chain));
        nd_assert(layers->count > 0);
        layers->count--;
        free(entry);
        return parent;
}

struct nd_digest nd_layers_entry_chain(const struct nd_layers_entry *entry) {
        struct nd_digest chain = {.kind = ND_HASH_SHA256};

        memcpy(chain.bytes, entry->chain, sizeof entry->chain);
        return chain;
}

struct nd_layers_entry *nd_layers_next(const struct nd_layers *layers, size_t *position) {
        while (*position < layers->capacity) {
                struct nd_layers_entry *entry = layers->slots[(*position)++];

                if (entry)
                        return entry;
        }
        return nullptr;
}
