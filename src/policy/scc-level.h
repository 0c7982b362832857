/* SPDX-License-Identifier: Apache-2.0 */
/* scc-level.h - the pod security level that the pods of a constraint need
 *
 * The level is the strictest that admits the pods of the constraint, by the rules of
 * the latest policy. Three kinds of pods may still be refused at it, because the level would have
 * to be privileged for a whole namespace otherwise: pods that unmask /proc or set an AppArmor
 * profile where the constraint does not compare these fields, and pods with an unconfined seccomp
 * profile whose constraint requires a user namespace. */
#pragma once

#include "policy/podsecurity.h"
#include "policy/scc.h"

enum nd_podsecurity_level nd_scc_level(const struct nd_scc *scc);
