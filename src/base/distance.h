/* SPDX-License-Identifier: Apache-2.0 */
/* distance.h - how far two words are apart, to suggest the word that was meant */
#pragma once

#include <stddef.h>

enum { ND_DISTANCE_MOST = 253 }; /* bytes of a word */

/* Sets ret[n] to the fewest letters to insert, remove, replace or swap with a neighbour that turn
 * the word into the first n letters of the name. ret has name_length + 1 elements. */
void nd_distance(const char *word, size_t length, const char *name, size_t name_length, bool ignore_case, unsigned *ret);
