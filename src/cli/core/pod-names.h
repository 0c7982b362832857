/* SPDX-License-Identifier: Apache-2.0 */
/* pod-names.h - the names of pods of which only the UID is known
 *
 * nodens-cri has the names of its pods. With another runtime, or if it does not answer, the
 * kubelet's directories of logs have them: /var/log/pods/NAMESPACE_NAME_UID. */
#pragma once

#include "base/map.h"

#define POD_LOGS "/var/log/pods"

struct cli_pod_name {
        char *namespace, *name;
};

struct cli_pod_names {
        struct nd_map by_uid; /* values are struct cli_pod_name */
};

void cli_pod_names_done(struct cli_pod_names *names);

/* Takes what can be found; a source that does not exist or answer is not an error. socket nullptr =
 * the default. */
void cli_pod_names_read(struct cli_pod_names *names, const char *socket);

/* The second source alone, for tests. */
void cli_pod_names_read_logs(struct cli_pod_names *names, const char *directory);

/* Returns nullptr for an unknown pod. */
[[nodiscard]] const struct cli_pod_name *cli_pod_names_get(const struct cli_pod_names *names, const char *uid);
