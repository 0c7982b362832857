/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - the files pods/<uid>/userns under the kubelet's root directory
 *
 * The directory tree is the kubelet's: every subdirectory of pods/ belongs to a pod and is named
 * after the pod's UID. We write only the file `userns`, mode 0600, and the pod's directory if it is
 * missing. */
#pragma once

#include "base/error.h"
#include "sys/file.h"

enum {
        /* maximum of directories that are read; a node has at most 65,536 blocks */
        ND_STORE_PODS = 1 << 20,
};

struct nd_userns_store {
        char *path; /* of pods/ */
};

void nd_userns_store_done(struct nd_userns_store *store);
void nd_userns_store_init(const char *kubelet_root, struct nd_userns_store *ret);

/* A UID becomes a file name: one component, not hidden, at most 253 bytes. */
[[nodiscard]] struct nd_error *nd_userns_store_check_uid(const char *pod_uid);

/* Lists the UIDs that have a directory. ND_NOT_FOUND if pods/ does not exist. */
[[nodiscard]] struct nd_error *nd_userns_store_list(const struct nd_userns_store *store, struct nd_strings *ret);

/* Returns the file's bytes; nullptr and 0 if the file is missing or empty, which both mean "no user
 * namespace". */
[[nodiscard]] struct nd_error *nd_userns_store_read(const struct nd_userns_store *store, const char *pod_uid, char **ret,
                                                    size_t *ret_length);

/* Durable when it returns. */
[[nodiscard]] struct nd_error *nd_userns_store_write(const struct nd_userns_store *store, const char *pod_uid,
                                                     const char *text);

/* Durably gone when it returns. */
[[nodiscard]] struct nd_error *nd_userns_store_remove(const struct nd_userns_store *store, const char *pod_uid);
