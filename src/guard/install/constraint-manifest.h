/* SPDX-License-Identifier: Apache-2.0 */
/* constraint-manifest.h - a default constraint as an object for `kubectl apply` */
#pragma once

#include "base/text.h"
#include "policy/scc.h"

/* Appends one document; group is the API group of the constraints. */
void guard_constraint_manifest_write(const struct nd_scc_default *one, const char *group, struct nd_text *text);
