/* SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void nd_assert_failed(const char *condition, const char *file, int line) {
        (void) dprintf(STDERR_FILENO, "nodens: %s:%d: assertion failed: %s\n", file, line, condition);
        abort();
}
