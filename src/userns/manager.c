/* SPDX-License-Identifier: Apache-2.0 */
/* manager.c - see manager.h
 *
 * Theory of operation
 *   The files are authoritative, memory is an index of them: @pods maps a UID to the contents of
 *   its file, @blocks contains the blocks without a claim. Blocks are numbered over the whole ID
 *   space (first ID / size), so that several extents need no arithmetic of their own; a block that
 *   may not be allocated (outside of the range, across two extents, the first, or ending at
 *   2^32) is simply never free.
 *   To allocate: take a block in memory, write the file, return. To release: remove the file, free
 *   the block. A crash between the two steps leaves a file without a pod, which the sweep removes,
 *   or a block that is free after the restart; it never leaves a block with two owners.
 *   A pod in quarantine claims all blocks that its file names, even in part or not aligned to our
 *   block size. Then two pods may claim one block, hence give_back() frees a block only when no
 *   other pod claims it.
 * Owns       @pods and what they point to.
 * Invariant  a block is free in @blocks only if no file names it and no pod claims it.
 * See also   userns/store.c, userns/mapping.c, userns/blocks.c */
#include "userns/manager.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "userns/blocks.h"
#include "userns/mapping.h"
#include "userns/store.h"

struct pod {
        struct nd_userns_extents extents;
        char *problem; /* set = quarantined */
};

struct nd_userns_manager {
        struct nd_userns_store store;
        uint32_t ids_per_pod;
        struct nd_userns_range range;
        bool confined; /* to the delegated extents, of which there may be none */
        struct nd_userns_extents delegated;
        bool read_only;
        uint32_t usable;
        uint32_t quarantined; /* pods with a problem */
        bool overlaps;        /* two pods have claimed one block at some time */
        struct nd_blocks blocks;
        struct nd_map pods;
};

static void pod_free(struct pod *pod) {
        if (!pod)
                return;
        nd_userns_extents_done(&pod->extents);
        free(pod->problem);
        free(pod);
}

static void pod_done(struct pod **pod) {
        pod_free(*pod);
}

void nd_userns_manager_free(struct nd_userns_manager *m) {
        const struct nd_map_slot *slot;

        if (!m)
                return;
        for (size_t at = 0; (slot = nd_map_next(&m->pods, &at));)
                pod_free(slot->value);
        nd_map_done(&m->pods);
        nd_blocks_done(&m->blocks);
        nd_userns_extents_done(&m->delegated);
        nd_userns_store_done(&m->store);
        free(m);
}

/* Whether the node may allocate this block at all. */
static bool in_range(const struct nd_userns_manager *m, uint32_t block) {
        uint64_t first = (uint64_t) block * m->ids_per_pod;

        return first >= m->range.first && first + m->ids_per_pod <= (uint64_t) m->range.first + m->range.count &&
               (!m->confined || nd_userns_extents_hold(&m->delegated, first, m->ids_per_pod));
}

static bool usable(const struct nd_userns_manager *m, uint32_t block) {
        return in_range(m, block) && ((uint64_t) block + 1) * m->ids_per_pod < ND_ID_SPACE;
}

static void make_blocks(struct nd_userns_manager *m) {
        uint32_t count = (uint32_t) (ND_ID_SPACE / m->ids_per_pod);

        nd_blocks_init(count, &m->blocks);
        for (uint32_t block = 0; block < count; block++)
                if (usable(m, block))
                        nd_blocks_give(&m->blocks, block);
        m->usable = m->blocks.free_count;
}

/* The blocks that an extent touches, limited to the ID space. */
static void touched(const struct nd_userns_manager *m, const struct nd_userns_extent *extent, uint32_t *ret_from,
                    uint32_t *ret_to) {
        uint64_t end = extent->first + extent->count;

        *ret_from = (uint32_t) (extent->first / m->ids_per_pod);
        *ret_to = (uint32_t) (((end < ND_ID_SPACE ? end : ND_ID_SPACE) + m->ids_per_pod - 1) / m->ids_per_pod);
}

static bool pod_claims(const struct nd_userns_manager *m, const struct pod *pod, uint32_t block) {
        nd_vector_each (extent, &pod->extents) {
                uint32_t from, to;

                touched(m, extent, &from, &to);
                if (block >= from && block < to)
                        return true;
        }
        return false;
}

static bool claimed(const struct nd_userns_manager *m, uint32_t block) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&m->pods, &at));)
                if (pod_claims(m, slot->value, block))
                        return true;
        return false;
}

/* Adds a pod to the index and takes its blocks; a block that is taken already then has two
 * claims. */
static void index_pod(struct nd_userns_manager *m, const char *pod_uid, struct pod *pod) {
        nd_vector_each (extent, &pod->extents) {
                uint32_t from, to;

                touched(m, extent, &from, &to);
                for (uint32_t block = from; block < to; block++)
                        if (usable(m, block) && !nd_blocks_take(&m->blocks, block))
                                m->overlaps = true;
        }
        m->quarantined += pod->problem != nullptr;
        (void) nd_map_put(&m->pods, pod_uid, pod);
}

/* Removes a pod from the index and frees the blocks that no other pod claims. While no two claims
 * ever overlapped, no other pod needs to be checked, and a release does not get slower with the
 * number of pods. */
static void give_back(struct nd_userns_manager *m, const char *pod_uid) {
        nd_cleanup(pod_done) struct pod *pod = nd_map_remove(&m->pods, pod_uid);

        if (!pod)
                return;
        nd_assert(!pod->problem || m->quarantined > 0);
        m->quarantined -= pod->problem != nullptr;
        nd_vector_each (extent, &pod->extents) {
                uint32_t from, to;

                touched(m, extent, &from, &to);
                for (uint32_t block = from; block < to; block++)
                        if (usable(m, block) && !(m->overlaps && claimed(m, block)))
                                nd_blocks_give(&m->blocks, block);
        }
}

static struct pod *pod_with_block(uint32_t first, uint32_t count) {
        struct pod *pod = nd_new(struct pod);

        nd_vector_push(&pod->extents, ((struct nd_userns_extent) {.first = first, .count = count}));
        return pod;
}

/* Keeps the blocks that an invalid file names out of use and records the reason. */
static void quarantine(struct nd_userns_manager *m, const char *pod_uid, const char *bytes, size_t length,
                       const struct nd_error *why) {
        nd_autoerror struct nd_error *unreadable = nullptr;
        struct pod *pod = nd_new(struct pod);
        struct nd_mapping mapping = {};

        pod->problem = nd_strdup(nd_error_text(why));
        if (bytes)
                unreadable = nd_mapping_parse(bytes, length, &mapping);
        if (unreadable || mapping.uid_lines > 1 || mapping.gid_lines > 1) {
                nd_mapping_salvage(bytes, length, &pod->extents);
        } else {
                const struct nd_mapping_line *lines[] = {&mapping.uid, &mapping.gid};

                for (size_t i = 0; i < nd_count_of(lines); i++)
                        if (lines[i]->length > 0 || lines[i]->host > 0)
                                nd_vector_push(&pod->extents, ((struct nd_userns_extent) {
                                                                      .first = lines[i]->host,
                                                                      .count = lines[i]->length > 0 ? lines[i]->length : 1}));
        }
        index_pod(m, pod_uid, pod);
}

/* The kubelet's checks of a block in a file, against the current state. */
static struct nd_error *record(struct nd_userns_manager *m, const char *pod_uid, uint32_t first, uint32_t length) {
        const struct pod *known = nd_map_get(&m->pods, pod_uid);
        nd_autofree char *quoted = nd_text_quote(pod_uid);
        uint32_t block = first / m->ids_per_pod;

        if (length != m->ids_per_pod)
                return nd_error_new(ND_INVALID, 0, "wrong user namespace length %u", length);
        if (first % m->ids_per_pod != 0)
                return nd_error_new(ND_INVALID, 0, "wrong user namespace offset specified %u", first);
        if (known && known->extents.items[0].first != first)
                return nd_error_new(ND_INVALID, 0, "different user namespace range already used by pod %s", quoted);
        if (!in_range(m, block))
                return nd_error_new(ND_INVALID, 0, "id %u is out of range", first);
        if (known)
                return nullptr;
        if (usable(m, block) ? !nd_blocks_is_free(&m->blocks, block) : claimed(m, block))
                return nd_error_new(ND_INVALID, 0, "range picked for pod %s already taken", quoted);
        index_pod(m, pod_uid, pod_with_block(first, length));
        return nullptr;
}

static struct nd_error *parse_and_record(struct nd_userns_manager *m, const char *pod_uid, const char *bytes, size_t length,
                                         struct nd_userns_range *ret) {
        struct nd_mapping mapping;

        nd_try(nd_mapping_parse(bytes, length, &mapping));
        nd_try(nd_mapping_check(&mapping));
        nd_try(record(m, pod_uid, mapping.uid.host, mapping.uid.length));
        *ret = (struct nd_userns_range) {.first = mapping.uid.host, .count = mapping.uid.length};
        return nullptr;
}

/* A shortage of our own resources, which is not a property of the file. */
static bool is_shortage(const struct nd_error *error) {
        int number = nd_error_errno(error);

        return number == EMFILE || number == ENFILE || number == ENOMEM;
}

/* Reads one pod's file at start. An invalid file puts the pod into quarantine; but if the file
 * could not be read at all, its block would count as free and be allocated a second time, so that
 * is an error. */
static struct nd_error *recover_pod(struct nd_userns_manager *m, const char *pod_uid, bool may_quarantine) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *bytes = nullptr, *quoted = nd_text_quote(pod_uid);
        struct nd_userns_range ignored;
        size_t length = 0;

        error = nd_userns_store_read(&m->store, pod_uid, &bytes, &length);
        if (!error && bytes)
                error = parse_and_record(m, pod_uid, bytes, length, &ignored);
        if (error && may_quarantine && !is_shortage(error)) {
                quarantine(m, pod_uid, bytes, length, error);
                return nullptr;
        }
        return nd_error_wrap(nd_take_ptr(error), "record pod mappings for existing pod %s", quoted);
}

/* Valid files first, so that an invalid one cannot take a block from its rightful pod: it affects
 * only its own pod. */
static struct nd_error *recover(struct nd_userns_manager *m) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_cleanup(nd_strings_done) struct nd_strings names = {};
        nd_vector(const char *) bad = {};

        error = nd_userns_store_list(&m->store, &names);
        if (nd_error_code(error) == ND_NOT_FOUND)
                return nullptr;
        if (error)
                return nd_error_wrap(nd_take_ptr(error), "read pods from disk");
        nd_vector_each (name, &names) {
                nd_autoerror struct nd_error *problem = recover_pod(m, *name, false);

                if (problem)
                        nd_vector_push(&bad, *name);
        }
        for (size_t i = 0; i < bad.count && !error; i++)
                error = recover_pod(m, bad.items[i], true);
        nd_vector_done(&bad);
        return nd_take_ptr(error);
}

struct nd_error *nd_userns_manager_open(const struct nd_userns_settings *settings, struct nd_userns_manager **ret) {
        nd_cleanup(nd_userns_manager_done) struct nd_userns_manager *m = nullptr;

        nd_try(nd_range_check(settings->range, settings->ids_per_pod, settings->max_pods));

        m = nd_new(struct nd_userns_manager);
        nd_userns_store_init(settings->kubelet_root, &m->store);
        m->ids_per_pod = settings->ids_per_pod;
        m->range = settings->range;
        m->read_only = settings->read_only;
        m->confined = settings->delegated != nullptr;
        if (settings->delegated)
                nd_vector_each (extent, settings->delegated) {
                        nd_vector_push(&m->delegated, *extent);
                }
        make_blocks(m);
        if (m->usable < settings->max_pods)
                return nd_error_new(ND_INVALID, 0, "kubelet user assigned IDs are not enough to support %u pods",
                                    settings->max_pods);
        nd_try(recover(m));
        *ret = nd_take_ptr(m);
        return nullptr;
}

/* Writes a new pod's file; after an error the pod has no block, unless its file could not be
 * removed again. */
static struct nd_error *create(struct nd_userns_manager *m, const char *pod_uid, uint32_t first) {
        nd_autofree char *text = nd_mapping_format(first, m->ids_per_pod);
        nd_autoerror struct nd_error *error = nd_userns_store_write(&m->store, pod_uid, text), *left = nullptr;

        if (!error)
                return nullptr;
        left = nd_userns_store_remove(&m->store, pod_uid);
        if (!left)
                give_back(m, pod_uid);
        return nd_error_wrap(nd_take_ptr(error), "create user namespace");
}

/* Writes the file of a running pod that has its block already. After an error it keeps the block:
 * another pod must not get it. */
static struct nd_error *restore(struct nd_userns_manager *m, const char *pod_uid, const struct nd_userns_extent *block) {
        nd_autofree char *text = nd_mapping_format((uint32_t) block->first, m->ids_per_pod);

        nd_try(nd_error_wrap(record(m, pod_uid, (uint32_t) block->first, (uint32_t) block->count), "create user namespace"));
        return nd_error_wrap(nd_userns_store_write(&m->store, pod_uid, text), "create user namespace");
}

static struct nd_error *allocate(struct nd_userns_manager *m, const char *pod_uid, struct nd_userns_range *ret) {
        const struct pod *known = nd_map_get(&m->pods, pod_uid);
        uint32_t block, first;

        if (known) {
                first = (uint32_t) known->extents.items[0].first;
                nd_try(restore(m, pod_uid, &known->extents.items[0]));
        } else {
                if (!nd_blocks_find(&m->blocks, &block))
                        return nd_error_new(
                                ND_EXHAUSTED, 0,
                                "create user namespace: could not find an empty slot to allocate a user namespace");
                first = block * m->ids_per_pod;
                index_pod(m, pod_uid, pod_with_block(first, m->ids_per_pod));
                nd_try(create(m, pod_uid, first));
        }
        *ret = (struct nd_userns_range) {.first = first, .count = m->ids_per_pod};
        return nullptr;
}

struct nd_error *nd_userns_manager_get(struct nd_userns_manager *m, const char *pod_uid, struct nd_userns_range *ret) {
        nd_autoerror struct nd_error *error = nullptr;
        nd_autofree char *bytes = nullptr;
        const struct pod *known;
        size_t length = 0;
        bool retried;

        nd_try(nd_userns_store_check_uid(pod_uid));
        if (m->read_only)
                return nd_error_new(ND_PRECONDITION, EROFS, "the user namespace manager is read-only");
        error = nd_userns_store_read(&m->store, pod_uid, &bytes, &length);

        /* Checks a pod in quarantine again: its file may have been repaired or removed. */
        known = nd_map_get(&m->pods, pod_uid);
        retried = known && known->problem;
        if (retried && !error)
                give_back(m, pod_uid);
        if (error)
                return nd_take_ptr(error);
        if (!bytes)
                return allocate(m, pod_uid, ret);
        error = parse_and_record(m, pod_uid, bytes, length, ret);
        if (error && retried)
                quarantine(m, pod_uid, bytes, length, error);
        return nd_error_wrap(nd_take_ptr(error), "user namespace");
}

void nd_userns_manager_reserve(struct nd_userns_manager *m, const char *pod_uid, struct nd_userns_range block) {
        if (!nd_map_has(&m->pods, pod_uid))
                index_pod(m, pod_uid, pod_with_block(block.first, block.count));
}

struct nd_error *nd_userns_manager_release(struct nd_userns_manager *m, const char *pod_uid) {
        if (!nd_map_has(&m->pods, pod_uid))
                return nullptr;
        if (m->read_only)
                return nd_error_new(ND_PRECONDITION, EROFS, "the user namespace manager is read-only");
        nd_try(nd_userns_store_remove(&m->store, pod_uid));
        give_back(m, pod_uid);
        return nullptr;
}

static void keep_first(struct nd_error **first, struct nd_error *error) {
        if (*first)
                nd_error_free(error);
        else
                *first = error;
}

struct nd_error *nd_userns_manager_sweep(struct nd_userns_manager *m, const struct nd_map *alive) {
        nd_cleanup(nd_strings_done) struct nd_strings names = {}, gone = {};
        nd_cleanup(nd_map_done) struct nd_map on_disk = {};
        nd_autoerror struct nd_error *first = nullptr;
        const struct nd_map_slot *slot;

        first = nd_userns_store_list(&m->store, &names);
        if (first)
                return nd_error_wrap(nd_take_ptr(first), "user namespace: read pods from disk");
        nd_vector_each (name, &names) {
                (void) nd_map_put(&on_disk, *name, nullptr);
                if (!nd_map_has(alive, *name))
                        keep_first(&first, nd_userns_manager_release(m, *name));
        }
        for (size_t at = 0; (slot = nd_map_next(&m->pods, &at));)
                if (!nd_map_has(&on_disk, slot->key))
                        nd_strings_add(&gone, slot->key);
        nd_vector_each (name, &gone) {
                keep_first(&first, nd_userns_manager_release(m, *name));
        }
        return nd_take_ptr(first);
}

void nd_userns_manager_each(const struct nd_userns_manager *m,
                            void (*function)(const struct nd_userns_pod *pod, void *userdata), void *userdata) {
        const struct nd_map_slot *slot;

        for (size_t at = 0; (slot = nd_map_next(&m->pods, &at));) {
                const struct pod *pod = slot->value;

                function(&(struct nd_userns_pod) {.uid = slot->key,
                                                  .extents = pod->extents.items,
                                                  .extent_count = pod->extents.count,
                                                  .problem = pod->problem},
                         userdata);
        }
}

struct nd_userns_count nd_userns_manager_count(const struct nd_userns_manager *m) {
        return (struct nd_userns_count) {
                .usable = m->usable,
                .free = m->blocks.free_count,
                .pods = (uint32_t) m->pods.count - m->quarantined,
                .quarantined = m->quarantined,
        };
}
