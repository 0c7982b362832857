/* SPDX-License-Identifier: Apache-2.0 */
/* cni-check.h - after a restart: do the plugins still find what they made for each pod? */
#pragma once

struct cri_parts;
struct cri_cni_check;

/* Notes the pods that there are now. */
[[nodiscard]] struct cri_cni_check *cri_cni_check_new(struct cri_parts *parts);
void cri_cni_check_free(struct cri_cni_check *checks);

/* From now on, in its own time. */
void cri_cni_check_begin(struct cri_cni_check *checks);
