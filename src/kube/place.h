/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - a position in a JSON document: a chain on the stack of the walk, formatted for messages
 * only */
#pragma once

#include "base/text.h"

struct nd_place {
        const struct nd_place *up;
        const char *name; /* nullptr: an element of a list */
        size_t index;
};

/* Appends "spec.containers[0].name". */
void nd_place_format(const struct nd_place *place, struct nd_text *text);
