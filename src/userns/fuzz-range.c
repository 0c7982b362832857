/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-range.c - output of getsubids: an accepted range is parsed the same after printing, and its
 * checks agree with arithmetic */
#include <string.h>

#include <unit/fuzz.h>

#include "base/text.h"
#include "userns/range.h"
#include "userns/subid.h"

/* The kubelet's conditions, restated as one expression. */
static bool usable(struct nd_userns_range range, uint32_t size, uint32_t pods) {
        return size > 0 && size % ND_IDS_UNIT == 0 && range.first % size == 0 && range.first >= size &&
               range.count % size == 0 && range.count / size >= pods;
}

static void check_range(struct nd_userns_range range) {
        static const uint32_t sizes[] = {0, 1, 65536, 3 * 65536, 1 << 24};
        struct nd_subid subid = {.first = range.first, .count = range.count};
        struct nd_subid_list ranges = {.items = &subid, .count = 1};
        nd_autofree char *text = nd_subid_list_text("kubelet", &ranges);
        struct nd_userns_range again = {};

        fuzz_require(!nd_range_parse(text, &again));
        fuzz_require(again.first == range.first && again.count == range.count);
        for (size_t i = 0; i < nd_count_of(sizes); i++) {
                nd_autoerror struct nd_error *error = nd_range_check(range, sizes[i], ND_PODS_DEFAULT);

                fuzz_require(!error == usable(range, sizes[i], ND_PODS_DEFAULT));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size);
        struct nd_userns_range range = {};
        nd_autoerror struct nd_error *error = nd_range_parse(text, &range);

        if (error) {
                fuzz_require(nd_error_code(error) == ND_INVALID);
                return 0;
        }
        check_range(range);
        return 0;
}
