/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the constraints, the namespace and the access rights of a cluster, for `nodens lint` */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "kube/pod.h"
#include "policy/scc.h"

struct cli_lint_cluster;

/* Which cluster and whose access; nullptr where the kubeconfig says it. */
struct cli_lint_cluster_settings {
        const char *kubeconfig;
        const char *namespace;
        const char *as; /* a user other than the kubeconfig's */
};

void cli_lint_cluster_free(struct cli_lint_cluster *cluster);

/* Asks the cluster for its constraints and the namespace; both live in the arena. */
[[nodiscard]] struct nd_error *cli_lint_cluster_open(const struct cli_lint_cluster_settings *settings, struct nd_arena *arena,
                                                     struct cli_lint_cluster **ret);

const struct nd_scc *cli_lint_cluster_constraint(const struct cli_lint_cluster *cluster,
                                                 size_t number); /* nullptr after the last */
struct nd_scc_namespace cli_lint_cluster_namespace(const struct cli_lint_cluster *cluster);

/* Whether the user, or the account that the pod runs as, may use a constraint. What could not be asked is no, and cli_lint_cluster_error() tells. */
bool cli_lint_cluster_may_use(struct cli_lint_cluster *cluster, const struct nd_scc *scc, const struct nd_pod *pod);
const struct nd_error *cli_lint_cluster_error(const struct cli_lint_cluster *cluster); /* the first one; nullptr: none */
