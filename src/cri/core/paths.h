/* SPDX-License-Identifier: Apache-2.0 */
/* paths.h - where on the node things are
 *
 *      <state>/pods/<sandbox>/                         sandbox.json, sandbox.pb (record.h)
 *      <state>/pods/<sandbox>/containers/<container>/  container.json, container.pb, config.json, upper/, work/, rootfs/
 *      <run>/pods/<sandbox>/                           pins of namespaces, the pod's small files
 *      <run>/containers/<container>/                   the monitor's socket and exit record
 *      <run>/crun/                                     crun's own state
 *      <netns>/nodens-<sandbox>                        the pod's network namespace
 *
 * All results are the caller's to free. */
#pragma once

#include "cri/core/config.h"
#include "cri/core/pod-table.h"

[[nodiscard]] char *cri_path_of_pods(const struct cri_config *config);
[[nodiscard]] char *cri_path_of_sandbox(const struct cri_config *config, const char *sandbox_id);
[[nodiscard]] char *cri_path_of_container(const struct cri_config *config, const struct cri_container *container);
[[nodiscard]] char *cri_path_of_sandbox_run(const struct cri_config *config, const char *sandbox_id);
[[nodiscard]] char *cri_path_of_container_run(const struct cri_config *config, const char *container_id);
[[nodiscard]] char *cri_path_of_oci_runtime(const struct cri_config *config, const char *handler); /* its own state */
[[nodiscard]] char *cri_path_of_netns(const struct cri_config *config, const char *sandbox_id);

/* Makes a pod's own directory. Its root filesystems are below, with programs that may be setuid for root: so nobody crosses it but root and, where the pod has
 * users of its own, the group of its mapped root, by which OCI runtimes go in its name. Whoever knows its path from the mount table is kept out. */
[[nodiscard]] struct nd_error *cri_path_make_of_pod(int dir_fd, const char *path, const struct cri_sandbox_request *pod);

/* True for what cri_pod_table_new_id() gives: the names of our directories, and nothing that could leave them. */
[[nodiscard]] bool cri_path_is_id(const char *name);
