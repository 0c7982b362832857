/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - what outlives the daemon: one record per sandbox and per container
 *
 *      <state>/pods/<sandbox>/sandbox.json     where it stands: state, what was made, addresses, boot id, format version
 *      <state>/pods/<sandbox>/sandbox.pb       RunPodSandboxRequest, as the kubelet sent it
 *      .../containers/<container>/container.json
 *      .../containers/<container>/container.pb CreateContainerRequest, as sent; absent for the pod's init
 *
 * Whoever changes an object saves it before the change is acknowledged, and before each step that would leave something behind. A
 * saved record is there after the daemon was killed; one that was saved RECORD_DURABLE is there after a power cut, too, which costs
 * two flushes of the disk: for what a reboot must not forget (a CNI ADD, a container that was started, how it ended) and nothing else. */
#pragma once

#include "cri/core/pod-table.h"

struct cri_config;
struct cri_record_store;

enum cri_record_how {
        RECORD_NOSYNC, /* survives us */
        RECORD_SYNC,   /* survives the machine */
};

/* Takes <state>/pods, making what is missing. */
[[nodiscard]] struct nd_error *cri_record_store_open(const struct cri_config *config, struct cri_record_store **ret);
void cri_record_store_free(struct cri_record_store *store);

/* The first record of an object, with the request's bytes (nullptr for the pod's init): makes its directory. From then on it is undone by
 * record_remove_*(). */
[[nodiscard]] struct nd_error *cri_record_new_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox,
                                                      const char *bytes, size_t length);
[[nodiscard]] struct nd_error *cri_record_new_container(struct cri_record_store *store, const struct cri_container *container,
                                                        const char *bytes, size_t length);

[[nodiscard]] struct nd_error *cri_record_save_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox,
                                                       enum cri_record_how how);
/* Makes a sandbox's record, as it is on disk, survive the machine. Blocks, and is for workers. */
[[nodiscard]] struct nd_error *cri_record_sync_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_save_container(struct cri_record_store *store, const struct cri_container *container,
                                                         enum cri_record_how how);

/* As cri_record_sync_sandbox(), of a container. */
[[nodiscard]] struct nd_error *cri_record_sync_container(struct cri_record_store *store,
                                                         const struct cri_container *container);

/* Removes the records and then the directory, in which nothing else may be left: whatever else a container has there (bundle, upper, work,
 * mount point) is gone before. Of what is not there, nothing is said. */
[[nodiscard]] struct nd_error *cri_record_remove_sandbox(struct cri_record_store *store, const struct cri_sandbox *sandbox);
[[nodiscard]] struct nd_error *cri_record_remove_container(struct cri_record_store *store,
                                                           const struct cri_container *container);

/* Fills an empty book of pods with what is on disk. A record that cannot be read costs its own pod or container, and is told in problems, in words for
 * the log: a damaged one is in the pod table as something that was never acknowledged, to be undone; one of a newer format is left as it is. */
[[nodiscard]] struct nd_error *cri_record_load(struct cri_record_store *store, struct cri_pod_table *pods,
                                               struct nd_strings *problems);
