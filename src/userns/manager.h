/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - allocates a block of IDs to every pod, and keeps it across restarts
 *
 * Its writing caller will be nodens-agent. Today `nodens ids` opens it read-only and tests use the
 * rest; nodens-cri takes the mapping from the kubelet and uses userns/probe.h only.
 *
 * The rules, files and texts are the kubelet's (1.36), so that a node can switch between the
 * kubelet and nodens-agent with running pods. Where the kubelet is wrong we differ, on purpose and
 * in these points only:
 *   1. the block that ends at 2^32 is never allocated (the kernel cannot map it), nor counted as
 *      room for a pod; nor is anything that a range names past it, where the kubelet's numbers
 *      wrap;
 *   2. a user `kubelet` without getsubids is not fatal (range.c);
 *   3. one unreadable or foreign file quarantines that pod and the blocks it names, and the manager
 *      starts;
 *   4. inside a user namespace only blocks within one delegated extent are allocated;
 *   5. a block is free again only when its file is durably gone: if removing it fails, the pod
 *   keeps
 *      it and the caller gets an error;
 *   6. a pod whose file vanished gets its own block again, not a second one;
 *   7. symbolic links, FIFOs, files of more than 64 KiB, and JSON that is not Unicode, nested
 *   deeper
 *      than 64 or with numbers past a double are foreign files;
 *   8. a UID that cannot name a directory of its own (hidden, with a slash, above 253 bytes) is
 *      refused;
 *   9. looking up a pod's file does not create its directory.
 * tests/component/userns/oracle.py checks that: it compares us with the kubelet's code and names
 * every difference. */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "userns/range.h"

struct nd_userns_settings {
        const char *kubelet_root; /* "/var/lib/kubelet" */
        uint32_t ids_per_pod;
        uint32_t max_pods;
        struct nd_userns_range range;
        /* of our own namespace; nullptr = the whole ID space */
        const struct nd_userns_extents *delegated;
        bool read_only; /* never writes */
};

struct nd_userns_manager;

/* Checks the range and reads the files. Errors are the kubelet's, without its "create user
 * namespace manager: ". */
[[nodiscard]] struct nd_error *nd_userns_manager_open(const struct nd_userns_settings *settings,
                                                      struct nd_userns_manager **ret);
void nd_userns_manager_free(struct nd_userns_manager *manager);
static inline void nd_userns_manager_done(struct nd_userns_manager **manager) {
        nd_userns_manager_free(*manager);
        *manager = nullptr;
}

/* Returns the pod's block: that of its file, or a new one, which is durably in the file before it
 * is returned. */
[[nodiscard]] struct nd_error *nd_userns_manager_get(struct nd_userns_manager *manager, const char *pod_uid,
                                                     struct nd_userns_range *ret);

/* Reserves a block for a pod that is known to run with it although its file does not contain it (as
 * the runtime reports at start). It is not written to a file; a pod that has a block already keeps
 * that one. */
void nd_userns_manager_reserve(struct nd_userns_manager *manager, const char *pod_uid, struct nd_userns_range block);

/* Releases the pod's block: removes the file, then frees the block. Succeeds for a pod without
 * one. */
[[nodiscard]] struct nd_error *nd_userns_manager_release(struct nd_userns_manager *manager, const char *pod_uid);

/* Releases the pods that have a directory or a block but are not in `alive` (its values are
 * ignored), and the blocks of pods whose directory is gone. Continues after an error and returns
 * the first. */
[[nodiscard]] struct nd_error *nd_userns_manager_sweep(struct nd_userns_manager *manager, const struct nd_map *alive);

/* The state of a pod, for commands and tests. */
struct nd_userns_pod {
        const char *uid;
        /* one, unless quarantined: then the extents in its file, possibly none */
        const struct nd_userns_extent *extents;
        size_t extent_count;
        const char *problem; /* nullptr unless quarantined */
};

/* Calls a function for every pod, in no particular order. */
void nd_userns_manager_each(const struct nd_userns_manager *manager,
                            void (*function)(const struct nd_userns_pod *pod, void *userdata), void *userdata);

struct nd_userns_count {
        uint32_t usable;      /* blocks that can be allocated at all */
        uint32_t free;        /* of these, currently */
        uint32_t pods;        /* pods that hold a block */
        uint32_t quarantined; /* pods with an unusable file */
};
struct nd_userns_count nd_userns_manager_count(const struct nd_userns_manager *manager);
