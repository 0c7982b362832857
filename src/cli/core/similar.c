/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/similar.h"

#include <string.h>

#include "base/distance.h"

enum {
        WORD_LEAST = 3,
        WORD_LONG = 8, /* two mistakes are allowed from here on */
        WORD_MOST = 64,
};

/* The distance to the nearest beginning of the name: random suffixes of pods do not count. */
static unsigned distance(const char *word, size_t length, const char *name, size_t name_length) {
        unsigned row[ND_DISTANCE_MOST + 1], result = WORD_MOST;

        nd_distance(word, length, name, name_length, false, row);
        for (size_t n = 0; n <= name_length; n++)
                if (row[n] < result)
                        result = row[n];
        return result;
}

bool cli_similar(const char *word, const char *name) {
        size_t length = strlen(word), name_length = strlen(name);

        if (length < WORD_LEAST || length > WORD_MOST)
                return false;
        if (strstr(name, word))
                return true;
        return distance(word, length, name, name_length < ND_DISTANCE_MOST ? name_length : ND_DISTANCE_MOST) <=
               (length < WORD_LONG ? 1 : 2);
}
