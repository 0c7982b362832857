/* SPDX-License-Identifier: Apache-2.0 */
/* bridge-upgrade.h - after an upgrade of nodens-bridge, replaces the processes of volumes in use */
#pragma once

struct cri_parts;
struct cri_bridge_upgrade;

/* Starts in the background. Failures are logged: the volumes stay with their processes. */
[[nodiscard]] struct cri_bridge_upgrade *cri_bridge_upgrade_new(struct cri_parts *parts);
void cri_bridge_upgrade_free(struct cri_bridge_upgrade *upgrade);
