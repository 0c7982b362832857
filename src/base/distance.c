/* SPDX-License-Identifier: Apache-2.0 */
#include "base/distance.h"

#include <ctype.h>
#include <string.h>

#include "base/assert.h"

static unsigned least(unsigned a, unsigned b) {
        return a < b ? a : b;
}

static bool same(char a, char b, bool ignore_case) {
        return a == b || (ignore_case && tolower((unsigned char) a) == tolower((unsigned char) b));
}

void nd_distance(const char *word, size_t length, const char *name, size_t name_length, bool ignore_case, unsigned *ret) {
        /* of the letter before the last, the last and the current letter of the word */
        unsigned rows[3][ND_DISTANCE_MOST + 1];
        unsigned *before = rows[0], *last = rows[1], *now = rows[2];

        nd_assert(word && name && name_length <= ND_DISTANCE_MOST);
        for (size_t n = 0; n <= name_length; n++)
                before[n] = last[n] = (unsigned) n;
        for (size_t w = 1; w <= length; w++) {
                unsigned *next = before;

                now[0] = (unsigned) w;
                for (size_t n = 1; n <= name_length; n++) {
                        now[n] = least(last[n - 1] + !same(word[w - 1], name[n - 1], ignore_case),
                                       least(last[n], now[n - 1]) + 1);
                        if (w > 1 && n > 1 && same(word[w - 1], name[n - 2], ignore_case) &&
                            same(word[w - 2], name[n - 1], ignore_case))
                                now[n] = least(now[n], before[n - 2] + 1);
                }
                before = last;
                last = now;
                now = next;
        }
        memcpy(ret, last, (name_length + 1) * sizeof *ret);
}
