/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pasta.h"

#include <ctype.h>
#include <string.h>

#include "base/clock.h"
#include "sys/child.h"

enum {
        DATE_DIGITS = 8,
        YEAR_MIN = 20200000, /* pasta's first version */
        YEAR_MAX = 21000000,
        VERSION_BYTES = 16 * 1024, /* the license follows the version */
};

static constexpr uint64_t version_timeout_us = 2 * ND_SECOND_US;

/* Reads a date at the beginning of a text: 20260507 as in packages, 2026_05_07 as in tags. */
static unsigned date_at(const char *text) {
        unsigned date = 0, digits = 0;

        for (; digits < DATE_DIGITS; text++) {
                if (*text == '_' && (digits == 4 || digits == 6))
                        continue;
                if (!isdigit((unsigned char) *text))
                        return 0;
                date = date * 10 + (unsigned) (*text - '0');
                digits++;
        }
        return isdigit((unsigned char) *text) || date < YEAR_MIN || date >= YEAR_MAX ? 0 : date;
}

bool nd_pasta_version_stalls(const char *said) {
        said += strspn(said, " \n");
        if (!*said)
                return true;
        for (const char *c = said; *c && *c != '\n'; c++) {
                unsigned date = c == said || !isdigit((unsigned char) c[-1]) ? date_at(c) : 0;

                if (date)
                        return date < ND_PASTA_FIXED;
        }
        return false;
}

struct nd_error *nd_pasta_stalls(bool *ret) {
        static const char *const argv[] = {"pasta", "--version", nullptr};
        nd_cleanup(nd_child_result_done) struct nd_child_result result = {};

        nd_try(nd_child_run(
                &(struct nd_child_plan) {.argv = argv, .deadline_us = version_timeout_us, .output_ceiling = VERSION_BYTES},
                &result));
        nd_try(nd_child_result_error(&result, "pasta"));
        *ret = nd_pasta_version_stalls(result.output);
        return nullptr;
}
