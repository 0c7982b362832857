/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - the entry point that libFuzzer and fuzz-replay.c call, and how a fuzzer reports a
 * violated property */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_require(condition)                                                                                               \
        do {                                                                                                                  \
                if (!(condition)) {                                                                                           \
                        (void) fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                 \
                        abort();                                                                                              \
                }                                                                                                             \
        } while (0)

/* The input as a C string; it ends at the first null byte. */
static inline char *fuzz_text(const uint8_t *data, size_t size) {
        return nd_strndup((const char *) data, size);
}
