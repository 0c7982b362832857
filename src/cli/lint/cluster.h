/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - constraints, namespace and access reviews of a cluster, for `nodens lint` */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "kube/pod.h"
#include "policy/scc.h"

struct cli_lint_cluster;

/* Which cluster and which user; nullptr = as in the kubeconfig. */
struct cli_lint_cluster_settings {
        const char *kubeconfig;
        const char *namespace;
        const char *as; /* a user other than the kubeconfig's */
};

void cli_lint_cluster_free(struct cli_lint_cluster *cluster);

/* Fetches constraints and namespace from the cluster; both live in the arena. */
[[nodiscard]] struct nd_error *cli_lint_cluster_open(const struct cli_lint_cluster_settings *settings, struct nd_arena *arena,
                                                     struct cli_lint_cluster **ret);

const struct nd_scc *cli_lint_cluster_constraint(const struct cli_lint_cluster *cluster,
                                                 size_t number); /* nullptr after the last */
struct nd_scc_namespace cli_lint_cluster_namespace(const struct cli_lint_cluster *cluster);

/* Returns whether the user, or the service account of the pod, may use a constraint. A failed
 * access review counts as denied; cli_lint_cluster_error() returns the error. */
bool cli_lint_cluster_may_use(struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct nd_pod *pod);
/* the first one; nullptr: none */
const struct nd_error *cli_lint_cluster_error(const struct cli_lint_cluster *cluster);
