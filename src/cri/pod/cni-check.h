/* SPDX-License-Identifier: Apache-2.0 */
/* cni-check.h - CNI CHECK of every pod after a restart */
#pragma once

struct cri_parts;
struct cri_cni_check;

/* Collects the existing pods. */
[[nodiscard]] struct cri_cni_check *cri_cni_check_new(struct cri_parts *parts);
void cri_cni_check_free(struct cri_cni_check *checks);

/* Starts checking in the background. */
void cri_cni_check_begin(struct cri_cni_check *checks);
