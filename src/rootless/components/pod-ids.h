/* SPDX-License-Identifier: Apache-2.0 */
/* pod-ids.h - the IDs from which the node's kubelet gives pods user namespaces of their own
 *
 * A stock kubelet takes them from the subordinate IDs of a user `kubelet`, with getsubids, and does
 * not start if they are fewer than 65536 for each of its maximum of pods. So the node gets such a
 * user, one range within the node's own IDs, and a maximum of pods that fits. Without the user a
 * kubelet would use IDs that the node does not have.
 *
 *      pods that fit    --max-pods    maximum of pods        hostUsers: false
 *      0                any           as given, or 110       refused
 *      1 to 9           not given     110                    refused
 *      10 and more      not given     what fits, up to 110   works
 *      any              fits          as given               works
 *      any              does not fit  as given               refused */
#pragma once

#include "rootless/components/cluster.h"
#include "rootless/node/bindplan.h"
#include "rootless/node/ids.h"

/* Chooses the range and the maximum of pods, by the table. */
void rootless_pod_ids_choose(struct rootless_cluster *cluster, const struct rootless_ids *ids);

/* One line about the choice. */
[[nodiscard]] char *rootless_pod_ids_summary(const struct rootless_cluster *cluster);

/* Adds the node's user `kubelet` and its subordinate IDs, or makes sure that there is none. */
[[nodiscard]] struct nd_error *rootless_pod_ids_files(const struct rootless_cluster *cluster, struct rootless_bindplan *plan);
