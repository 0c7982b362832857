/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - records of sandboxes and containers, which survive a restart of the daemon
 *
 *      <state>/pods/<sandbox>/sandbox.json       state, what was set up, addresses, boot id
 *      <state>/pods/<sandbox>/sandbox.pb         RunPodSandboxRequest, as sent by the kubelet
 *      .../containers/<container>/container.json
 *      .../containers/<container>/container.pb   CreateContainerRequest, as sent; not for the
 *                                                pod's init
 *
 * Each .json has a format version. An object is saved before a change is acknowledged, and
 * before each step that leaves something behind. A saved record survives when the daemon is
 * killed. One saved with RECORD_SYNC also survives a power cut, which costs two disk flushes:
 * use it only for what a reboot must not lose (a CNI ADD, a started container, its exit). */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_record_store;

enum cri_record_how {
        RECORD_NOSYNC, /* survives a crash of the daemon */
        RECORD_SYNC,   /* survives a power cut */
};

/* Opens <state>/pods, making missing directories. */
[[nodiscard]] struct nd_error *cri_record_store_open(const struct cri_config *config, struct cri_record_store **ret);
void cri_record_store_free(struct cri_record_store *store);

/* Writes the first record of an object, with the request's bytes (nullptr for the pod's init),
 * and makes its directory. cri_record_remove_*() undoes it. */
[[nodiscard]] struct nd_error *cri_record_new_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox,
                                                      const char *bytes, size_t length);
[[nodiscard]] struct nd_error *cri_record_new_container(struct cri_record_store *store, const struct cri_container *container,
                                                        const char *bytes, size_t length);

[[nodiscard]] struct nd_error *cri_record_save_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox,
                                                       enum cri_record_how how);
/* Flushes a sandbox's record to disk, so that it survives a power cut. Blocks: call it in a
 * worker. */
[[nodiscard]] struct nd_error *cri_record_sync_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_save_container(struct cri_record_store *store, const struct cri_container *container,
                                                         enum cri_record_how how);

/* The same for a container. */
[[nodiscard]] struct nd_error *cri_record_sync_container(struct cri_record_store *store,
                                                         const struct cri_container *container);

/* Removes the records and then the directory, in which nothing else may be left: the caller has
 * removed the container's bundle, upper, work and mount point. Missing files are no error. */
[[nodiscard]] struct nd_error *cri_record_remove_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_remove_container(struct cri_record_store *store,
                                                           const struct cri_container *container);

/* Fills an empty pod table from disk. A record that cannot be read affects only its own pod or
 * container and adds a log message to @problems. A damaged object is added as one that was never
 * acknowledged, to be undone; one of a newer format is left as it is. */
[[nodiscard]] struct nd_error *cri_record_load(struct cri_record_store *store, struct cri_pod_table *pods,
                                               struct nd_strings *problems);
