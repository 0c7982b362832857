/* SPDX-License-Identifier: Apache-2.0 */
/* lint-live.h - the constraints, the namespace and the rights of a cluster, for `nodens lint` */
#pragma once

#include "cli/lint.h"
#include "policy/scc.h"

struct lint_live;

void lint_live_free(struct lint_live *live);

/* Asks the cluster for its constraints and the namespace; both live in the arena. */
[[nodiscard]] struct nd_error *lint_live_open(const struct lint_settings *settings, struct nd_arena *arena,
                                              struct lint_live **ret);

const struct nd_scc *lint_live_constraint(const struct lint_live *live, size_t number); /* nullptr after the last */
struct nd_scc_namespace lint_live_namespace(const struct lint_live *live);

/* Whether the user, or the account that the pod runs as, may use a constraint. What could not be asked is no, and lint_live_error() tells. */
bool lint_live_may_use(struct lint_live *live, const struct nd_scc *scc, const struct nd_pod *pod);
const struct nd_error *lint_live_error(const struct lint_live *live); /* the first one; nullptr: none */
