/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/core/similar.h"

#include <string.h>

#include "base/memory.h"

enum {
        WORD_LEAST = 3,
        WORD_LONG = 8,  /* two mistakes are allowed from here on */
        WORD_MOST = 64, /* bounds of the table */
        NAME_MOST = 253,
};

static unsigned least(unsigned a, unsigned b) {
        return a < b ? a : b;
}

/* The fewest letters to insert, remove, replace or swap with a neighbour that turn the word into
 * the name's beginning: random suffixes of pods do not count. */
static unsigned distance(const char *word, size_t length, const char *name, size_t name_length) {
        unsigned row[3][NAME_MOST + 1]; /* before the last, last and current letter of the word */
        unsigned *before = row[0], *last = row[1], *now = row[2], result = WORD_MOST;

        for (size_t n = 0; n <= name_length; n++)
                before[n] = last[n] = (unsigned) n;
        for (size_t w = 1; w <= length; w++) {
                unsigned *next = before;

                now[0] = (unsigned) w;
                for (size_t n = 1; n <= name_length; n++) {
                        bool differs = word[w - 1] != name[n - 1];

                        now[n] = least(last[n - 1] + differs, least(last[n], now[n - 1]) + 1);
                        if (w > 1 && n > 1 && word[w - 1] == name[n - 2] && word[w - 2] == name[n - 1])
                                now[n] = least(now[n], before[n - 2] + 1);
                }
                before = last;
                last = now;
                now = next;
        }
        for (size_t n = 0; n <= name_length; n++)
                result = least(result, last[n]);
        return result;
}

bool cli_similar(const char *word, const char *name) {
        size_t length = strlen(word), name_length = strlen(name);

        if (length < WORD_LEAST || length > WORD_MOST)
                return false;
        if (strstr(name, word))
                return true;
        return distance(word, length, name, name_length < NAME_MOST ? name_length : NAME_MOST) <= (length < WORD_LONG ? 1 : 2);
}
