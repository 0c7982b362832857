/* SPDX-License-Identifier: Apache-2.0 */
/* scc-edit.h - the change of a pod that answers one error of a constraint */
#pragma once

#include "policy/advice.h"
#include "policy/scc.h"

/* Changes the pod, which must be a copy, so that the field of the error no longer contradicts the
 * constraint, and fills in the edit. Removes the field in most cases: the constraint has a default
 * for it. A value that a container inherits is removed from the pod's context. Returns false if
 * there is nothing to change. */
bool nd_scc_edit(const struct nd_scc *scc, const struct nd_field_error *error, struct nd_pod *pod, struct nd_arena *arena,
                 struct nd_advice_edit *ret);
