/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - paths of pods and containers on the node
 *
 *      <state>/pods/<sandbox>/                         sandbox.json, sandbox.pb (record.h)
 *      <state>/pods/<sandbox>/containers/<container>/  container.json, container.pb, config.json,
 *                                                      upper/, work/, rootfs/
 *      <run>/pods/<sandbox>/                           namespace pins, the pod's small files
 *      <run>/containers/<container>/                   the monitor's socket and exit record
 *      <run>/crun/                                     crun's own state
 *      <netns>/nodens-<sandbox>                        the pod's network namespace
 *
 * The caller frees all results. */
#pragma once

#include "cri/core/config.h"
#include "cri/core/pod-table.h"

[[nodiscard]] char *cri_path_of_pods(const struct cri_config *config);
[[nodiscard]] char *cri_path_of_sandbox(const struct cri_config *config, const char *sandbox_id);
[[nodiscard]] char *cri_path_of_container(const struct cri_config *config, const struct cri_container *container);
[[nodiscard]] char *cri_path_of_sandbox_run(const struct cri_config *config, const char *sandbox_id);
[[nodiscard]] char *cri_path_of_container_run(const struct cri_config *config, const char *container_id);
/* the runtime's state directory */
[[nodiscard]] char *cri_path_of_oci_runtime(const struct cri_config *config, const char *handler);
[[nodiscard]] char *cri_path_of_netns(const struct cri_config *config, const char *sandbox_id);

/* Makes a pod's directory. The root filesystems below it may contain programs that are setuid
 * root, so only root may traverse it and, if the pod has a user namespace, the group of its
 * mapped root, which OCI runtimes act as. A host user who learns the path from the mount table
 * cannot enter. */
[[nodiscard]] struct nd_error *cri_path_make_of_pod(int dir_fd, const char *path, const struct cri_sandbox_request *pod);

/* True for ids from cri_pod_table_new_id(): names of our directories, which contain no slash or
 * dot. */
[[nodiscard]] bool cri_path_is_id(const char *name);
