/* SPDX-License-Identifier: Apache-2.0 */
/* manager.h - gives every pod its own block of IDs, and remembers it across restarts
 *
 * Its writing caller will be nodens-agent. Today `nodens ids` opens it read-only and tests use the
 * rest; nodens-cri takes the mapping from the kubelet and uses userns/probe.h only.
 *
 * The rules, files and words are the kubelet's (1.36), so that a node can change between the kubelet and nodens-agent with its pods
 * alive. Where the kubelet is wrong we differ, on purpose and in these points only:
 *   1. the block that ends at 2^32 is never handed out (the kernel cannot map it), nor counted as room for a pod; nor is anything
 *      that a range names past it, where the kubelet's numbers wrap;
 *   2. a user `kubelet` without getsubids is not fatal (range.c);
 *   3. one unreadable or foreign file quarantines that pod and the blocks it names, and the manager starts;
 *   4. inside a user namespace only blocks within one delegated extent are handed out;
 *   5. a block is free again only when its file is durably gone: if removing it fails, the pod keeps it and the caller is told;
 *   6. a pod whose file vanished gets its own block again, not a second one;
 *   7. symbolic links, FIFOs, files of more than 64 KiB, and JSON that is not Unicode, nested deeper than 64 or with numbers past
 *      a double are foreign files;
 *   8. a UID that cannot name a directory of its own (hidden, with a slash, above 253 bytes) is refused;
 *   9. looking for a pod's file does not make its directory.
 * tests/component/userns/oracle.py holds us to that: it compares us with the kubelet's code and names every difference. */
#pragma once

#include "base/error.h"
#include "base/map.h"
#include "userns/range.h"

struct nd_userns_settings {
        const char *kubelet_root; /* "/var/lib/kubelet" */
        uint32_t ids_per_pod;
        uint32_t max_pods;
        struct nd_userns_range range;
        const struct nd_userns_extents *delegated; /* of the namespace we are in; nullptr = the whole ID space */
        bool read_only;                            /* look, but never write */
};

struct nd_userns_manager;

/* Checks the range and takes over what the files say. Errors are the kubelet's, without its "create user namespace manager: ". */
[[nodiscard]] struct nd_error *nd_userns_manager_open(const struct nd_userns_settings *settings,
                                                      struct nd_userns_manager **ret);
void nd_userns_manager_free(struct nd_userns_manager *manager);
static inline void nd_userns_manager_done(struct nd_userns_manager **manager) {
        nd_userns_manager_free(*manager);
        *manager = nullptr;
}

/* The pod's block: the one in its file, or a new one, which is durably in the file before it is returned. */
[[nodiscard]] struct nd_error *nd_userns_manager_get(struct nd_userns_manager *manager, const char *pod_uid,
                                                     struct nd_userns_range *ret);

/* Holds a block for a pod that is known to live with it, though its file does not say so (what the runtime reports at start).
 * It is not written to a file; a pod that has a block already keeps that one. */
void nd_userns_manager_reserve(struct nd_userns_manager *manager, const char *pod_uid, struct nd_userns_range block);

/* Gives the pod's block back: removes the file, then frees the block. A pod without one is fine. */
[[nodiscard]] struct nd_error *nd_userns_manager_release(struct nd_userns_manager *manager, const char *pod_uid);

/* Releases the pods that have a directory or a block but are not in `alive` (its values mean nothing), and the blocks of pods whose
 * directory is gone. Goes on after an error and returns the first. */
[[nodiscard]] struct nd_error *nd_userns_manager_sweep(struct nd_userns_manager *manager, const struct nd_map *alive);

/* What is known of a pod, for people and for tests. */
struct nd_userns_pod {
        const char *uid;
        const struct nd_userns_extent *extents; /* one, unless quarantined: then those that its file names, maybe none */
        size_t extent_count;
        const char *problem; /* nullptr unless quarantined */
};

/* Calls a function for every pod, in no order. */
void nd_userns_manager_each(const struct nd_userns_manager *manager,
                            void (*function)(const struct nd_userns_pod *pod, void *userdata), void *userdata);

struct nd_userns_count {
        uint32_t usable;      /* blocks that can be handed out at all */
        uint32_t free;        /* of them, right now */
        uint32_t pods;        /* pods that hold a block */
        uint32_t quarantined; /* pods whose file cannot be used */
};
struct nd_userns_count nd_userns_manager_count(const struct nd_userns_manager *manager);
