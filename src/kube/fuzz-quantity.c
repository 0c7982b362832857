/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz-quantity.c - an accepted quantity is parsed the same after printing, and its negative is
 * accepted too */
#include <unit/fuzz.h>

#include "base/text.h"
#include "kube/quantity.h"

static int64_t read_again(const char *text) {
        int64_t value = 0;

        fuzz_require(nd_quantity_parse(text, &value) == 0);
        return value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        nd_autofree char *text = fuzz_text(data, size), *opposite = nullptr, *whole = nullptr;
        bool sign = text[0] == '-' || text[0] == '+';
        int64_t value = 0, other;

        if (nd_quantity_parse(text, &value) < 0)
                return 0;
        fuzz_require(value > INT64_MIN);
        opposite = nd_format("%c%s", text[0] == '-' ? '+' : '-', text + sign);
        other = read_again(opposite);
        fuzz_require(value == -other || value == -other + 1); /* both are rounded up */
        whole = nd_format("%lldm", (long long) (value % 1000000000000000));
        fuzz_require(read_again(whole) == (value % 1000000000000000 + (value > 0 ? 999 : 0)) / 1000);
        return 0;
}
