/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - amounts as Kubernetes writes them: "10M", "1.5Gi", "2e6" */
#pragma once

#include <stdint.h>

/* The amount, rounded up to a whole number. Signs, fractions, exponents and all suffixes from n to E and Ki to Ei are read as Kubernetes reads them.
 * Returns -EINVAL for what is no quantity, and -ERANGE for one whose amount, or the number of whose digits, is beyond what we reckon with: 2^63 - 1 and
 * 18 digits without zeros at either end. */
[[nodiscard]] int nd_quantity_parse(const char *text, int64_t *ret);
