/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.h - parses quantities of Kubernetes: "10M", "1.5Gi", "2e6" */
#pragma once

#include <stdint.h>

/* Returns the amount, rounded up to an integer. Signs, fractions, exponents and all suffixes from n
 * to E and Ki to Ei are parsed as in Kubernetes. Returns -EINVAL for an invalid quantity, and
 * -ERANGE if the amount or the number of digits exceeds our limits: 2^63 - 1, and 18 digits without
 * leading and trailing zeros. */
[[nodiscard]] int nd_quantity_parse(const char *text, int64_t *ret);
