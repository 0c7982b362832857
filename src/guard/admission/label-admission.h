/* SPDX-License-Identifier: Apache-2.0 */
/* label-admission.h - refuses unknown values of the guard's own labels when they are written
 *
 * The webhooks select only namespaces with such a value. A value that a namespace has already does
 * not prevent other changes of it. */
#pragma once

#include "guard/core/review.h"

void guard_labels_decide(const struct guard_review *review, struct nd_arena *arena, struct guard_response *ret);
